// What sharing saves: reserved bytes of `placement` against PyTorch's arrangement.
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/device/device.h"
#include "core/graph/graph_callables.h"
#include "core/models/blocks.h"
#include "core/models/values.h"
#include "core/plan/planner.h"

namespace slotgraph::properties {
namespace {

constexpr std::int64_t kHidden = 256;
constexpr int kLayers = 2;
constexpr int kRing = 4;

// The first of four stages without virtual ones: four microbatches of two layers are live together.
Plan plan(std::vector<int> cp_sizes) {
  PlanRequest request;
  request.name = "memory";
  request.shape.pipeline_size = kRing;
  request.layers_per_chunk = {kLayers};
  request.cp_sizes = std::move(cp_sizes);
  request.counts = {4, 8};
  return make_plan(request);
}

// An MLP, fp32; a variant has 512 / CP size tokens.
MemoryUse measure(Mode mode, const std::vector<int>& cp_sizes) {
  const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
  const Plan slots = plan(cp_sizes);
  std::vector<GraphModule> layers;
  for (int l = 0; l < kLayers; ++l)
    layers.push_back(find_block("mlp").make({kHidden, at::kFloat}, 1 + l));
  std::vector<GraphModule> modules;
  std::vector<Inputs> samples;
  for (const int cp : cp_sizes) {
    modules.insert(modules.end(), layers.begin(), layers.end());
    const at::Tensor sample =
        integer_values({512 / cp, kHidden}, at::kFloat, 3).to(at::kCUDA).requires_grad_(true);
    samples.insert(samples.end(), kRing * kLayers, Inputs{{sample}, {}});
  }
  return graph_callables(modules, samples, slots.base_order, slots, {.mode = mode})->memory();
}

// Static inputs count on both sides.
TEST(Memory, PlacementNeedsLittleMoreThanItsLargestVariantAlone) {
  device::initialise();
  const std::vector<int> all{8, 4, 2, 1};
  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const MemoryUse alone = measure(Mode::kPerVariant, {1});
  const MemoryUse per_variant = measure(Mode::kPerVariant, all);
  const MemoryUse native = measure(Mode::kNative, all);
  const MemoryUse placement = measure(Mode::kPlacement, all);
  fmt::print("largest variant alone, PyTorch's arrangement {:8.1f} MiB\n",
             mib(alone.reserved_bytes));
  fmt::print("four variants, PyTorch's arrangement         {:8.1f} MiB\n",
             mib(per_variant.reserved_bytes));
  fmt::print("four variants, a pool for each frame         {:8.1f} MiB\n",
             mib(native.reserved_bytes));
  fmt::print(
      "four variants, placement                     {:8.1f} MiB (arenas {:.1f}), {:.3f} of alone\n",
      mib(placement.reserved_bytes), mib(placement.arena_bytes),
      mib(placement.reserved_bytes) / mib(alone.reserved_bytes));
  EXPECT_LE(mib(placement.reserved_bytes), 1.1 * mib(alone.reserved_bytes));
  EXPECT_LT(mib(placement.reserved_bytes), 0.7 * mib(per_variant.reserved_bytes));
}

}  // namespace
}  // namespace slotgraph::properties

// Variants of different sizes, every frame replayed alone: where the published runtime returns
// wrong parameter gradients without notice (its variants all pass as long as their sizes are
// equal).
#include <torch/csrc/autograd/autograd.h>

#include "core/graph/testing/rig.h"
#include "core/models/blocks.h"
#include "core/models/values.h"
#include "core/plan/planner.h"

namespace slotgraph::properties {
namespace {

constexpr int kLayers = 2;
constexpr std::int64_t kHidden = 32;

// The first of four stages without virtual ones: four microbatches of two layers are live together.
Plan four_variants() {
  PlanRequest request;
  request.name = "frames alone";
  request.shape.pipeline_size = 4;
  request.layers_per_chunk = {kLayers};
  request.cp_sizes = {8, 4, 2, 1};
  request.counts = {4, 8};
  return make_plan(request);
}

// Output, gradient of the input, gradients of the parameters.
Tensors run(const Tensors& outputs, const at::Tensor& input, const GraphModule& module,
            const at::Tensor& incoming) {
  Tensors wanted{input};
  const Tensors parameters = trainable_parameters(module);
  wanted.insert(wanted.end(), parameters.begin(), parameters.end());
  Tensors result{outputs[0].detach().clone()};
  for (const at::Tensor& gradient :
       torch::autograd::grad({outputs[0]}, wanted, {incoming}, std::nullopt, false, true))
    result.push_back(gradient.defined() ? gradient.clone() : gradient);
  return result;
}

// How many tensors of how many differ from eager.
std::pair<int, int> differing(const std::string& block, Mode mode) {
  const Plan plan = four_variants();
  std::vector<GraphModule> layers, modules;
  for (int l = 0; l < kLayers; ++l)
    layers.push_back(find_block(block).make({kHidden, at::kFloat}, 1 + l));
  std::vector<Inputs> samples;
  const auto tokens = [&](int branch) { return 256 / plan.cp_sizes[plan.variant_of(branch)]; };
  for (int v = 0; v < plan.variants(); ++v)
    modules.insert(modules.end(), layers.begin(), layers.end());
  for (int branch = 0; branch < static_cast<int>(plan.slots.size()); ++branch) {
    samples.push_back({{integer_values({tokens(branch), kHidden}, at::kFloat, 3)
                            .to(at::kCUDA)
                            .requires_grad_(true)},
                       {}});
  }
  const auto set = graph_callables(modules, samples, plan.base_order, plan, {.mode = mode});
  int different = 0, compared = 0;
  for (int branch = 0; branch < static_cast<int>(plan.slots.size()); ++branch) {
    const GraphModule& module = modules[plan.module_of(branch)];
    const auto values = [&](std::uint64_t purpose) {
      return integer_values({tokens(branch), kHidden}, at::kFloat,
                            mix({static_cast<std::uint64_t>(branch), purpose}))
          .to(at::kCUDA);
    };
    const at::Tensor input = values(1).requires_grad_(true), incoming = values(2);
    const Tensors found = run(set->at(branch).forward({{input}, {}}), input, module, incoming);
    const Tensors truth = run(module.forward({{input}}, {}), input, module, incoming);
    set->end_step();
    for (std::size_t i = 0; i < truth.size(); ++i) {
      ++compared;
      different += !testing::same_bytes(found[i], truth[i]);
    }
  }
  return {different, compared};
}

struct FramesAlone : testing::DeviceTest {};

TEST_F(FramesAlone, VariantsOfDifferentSizesAreRightInEveryMode) {
  for (const char* block : {"mlp", "attention"}) {
    for (const Mode mode : graph_modes()) {
      const auto [different, compared] = differing(block, mode);
      EXPECT_EQ(different, 0) << block << " mode " << static_cast<int>(mode);
      EXPECT_GE(compared, 192);
    }
  }
}

}  // namespace
}  // namespace slotgraph::properties

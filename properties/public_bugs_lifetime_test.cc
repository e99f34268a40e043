// Public reports (public_bugs.csv) about memory that is not the graphs': outputs that lie
// elsewhere, and the order in which everything dies.
#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstdlib>

#include "core/device/device.h"
#include "core/memory/private_pool.h"
#include "properties/published_testing.h"

namespace slotgraph::properties {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using testing::gradient;

struct PublicBugs : Published {
  PublicBugs() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

Net two_variants(const GraphModule& module) {
  return {distinct_plan({1}, 2, {1, -1}), {module}, [](int) { return ones({4, 8}); }};
}

// 14: an output in memory that the pools do not manage was poisoned as if it were theirs. Views of
// module state, and tensors without bytes, outlive the frame untouched.
// https://github.com/pytorch/pytorch/pull/188755
TEST_F(PublicBugs, OutputsOutsideThePoolsAreNeverPoisoned) {
  for (const Mode mode : slot_modes()) {
    const auto module = std::make_shared<torch::nn::Module>("static");
    const at::Tensor buffer = module->register_buffer("buffer", ramp({9, 8}));
    const Net net = two_variants({module, [=](at::TensorList in, const NamedTensors&) -> Tensors {
                                    return {in[0] * 2, buffer.narrow(0, 1, 8), buffer.view({-1}),
                                            in[0].narrow(0, 0, 0), buffer.narrow(0, 9, 0)};
                                  }});
    const auto set = net.capture(mode, {.checking = true});
    const at::Tensor before = buffer.clone();
    for (int replay = 0; replay < 4; ++replay) {
      const at::Tensor x = ramp({4, 8}).requires_grad_(true);
      const Tensors out = set->at(replay % 2).forward({{x}, {}});
      gradient(out[0], x);
      EXPECT_TRUE(same_bytes(buffer, before));
      EXPECT_TRUE(same_bytes(out[1], before.narrow(0, 1, 8))) << "read after its frame's end";
      EXPECT_TRUE(same_bytes(out[2], before.view({-1})));
      EXPECT_EQ(out[1].const_data_ptr(), buffer.narrow(0, 1, 8).const_data_ptr());
      EXPECT_EQ(out[3].numel() + out[4].numel(), 0);
    }
  }
}

// 14: other memory, which nobody may replay into, is refused or copied.
TEST_F(PublicBugs, OutputsInForeignMemoryAreRefusedOrCopied) {
  for (const Mode mode : slot_modes()) {
    const at::Tensor foreign = ramp({4, 8}, 3);
    const at::Tensor blob = at::from_blob(foreign.data_ptr(), {4, 8}, at::TensorOptions(at::kCUDA));
    for (const at::Tensor& elsewhere : {foreign, blob, foreign.narrow(0, 1, 2)}) {
      const Net net =
          two_variants(stateless([&](at::TensorList in, const NamedTensors&) -> Tensors {
            return {in[0] * 2, elsewhere};
          }));
      if (mode == Mode::kPlacement) {
        EXPECT_EQ(rule([&] { net.capture(mode); }), "PM02");
        continue;
      }
      const auto set = net.capture(mode, {.checking = true});
      const at::Tensor x = ramp({4, 8}).requires_grad_(true);
      const Tensors out = set->at(1).forward({{x}, {}});
      EXPECT_TRUE(same_bytes(out[1], elsewhere));
      EXPECT_NE(out[1].const_data_ptr(), elsewhere.const_data_ptr());
      gradient(out[0], x);
      EXPECT_TRUE(same_bytes(foreign, ramp({4, 8}, 3)));
    }
  }
}

// 46: outputs on the CPU escaped the check of what later replays overwrite.
// https://github.com/pytorch/pytorch/issues/144386
TEST_F(PublicBugs, OutputsOnTheCpuAreRefusedOrConstant) {
  const at::Tensor constant = at::arange(8, at::kFloat);
  const std::function<at::Tensor(const at::Tensor&)> differentiable[] = {
      [](const at::Tensor& x) { return x.cpu(); },
      [](const at::Tensor& x) { return x.cpu() * 2; },
  };
  for (const Mode mode : slot_modes()) {
    for (const auto& output : differentiable) {
      const Net net =
          two_variants(stateless([&](at::TensorList in, const NamedTensors&) -> Tensors {
            return {in[0] * 2, output(in[0])};
          }));
      EXPECT_EQ(rule([&] { net.capture(mode); }), "W06");
    }
    const Net net = two_variants(stateless([&](at::TensorList in, const NamedTensors&) -> Tensors {
      return {in[0] * 2, constant};
    }));
    const auto set = net.capture(mode, {.checking = true});
    Tensors kept;
    for (int replay = 0; replay < 3; ++replay) {
      const at::Tensor x = ramp({4, 8}, replay).requires_grad_(true);
      const Tensors out = set->at(replay % 2).forward({{x}, {}});
      gradient(out[0], x);
      kept.push_back(out[1]);
    }
    for (const at::Tensor& output : kept) EXPECT_TRUE(same_bytes(output, constant));
  }
}

// What a process may hold of graphs and pools when it ends.
struct Holdings {
  explicit Holdings(Mode mode) {
    const Net net = two_variants(unary([](const at::Tensor& x) { return at::tanh(x) * x; }));
    set = net.capture(mode);
    const at::Tensor x = ramp({4, 8}).requires_grad_(true);
    leading = gradient(set->at(0).forward({{x}, {}})[0], x);
    output = set->at(1).forward({{x}, {}})[0];
    pool = std::make_unique<PrivatePool>();
    graph = device::make_graph();
    device::synchronise();
    graph->begin_capture(pool->id());
    in_pool = x.detach() * 2;
    graph->end_capture();
    graph->replay();
  }
  void drop(int what) {
    if (what == 0) set.reset();
    if (what == 1) output = leading = at::Tensor();
    if (what == 2) pool.reset();
    if (what == 3) graph.reset();
    if (what == 4) in_pool = at::Tensor();
  }
  std::unique_ptr<CallableSet> set;
  at::Tensor output, leading, in_pool;
  std::unique_ptr<PrivatePool> pool;
  std::unique_ptr<device::Graph> graph;
};

// 27: the process ended with "invalid argument" when pools, graphs and tensors died in another
// order. https://github.com/fzyzcjy/torch_memory_saver/pull/18
TEST_F(PublicBugs, EverythingComesBackInEveryOrderOfDeath) {
  const auto free_bytes = [] {
    device::synchronise();
    device::release_workspaces();
    caching::emptyCache();
    return device::memory_info().free_bytes;
  };
  for (const Mode mode : graph_modes()) {
    std::vector<int> order{0, 1, 2, 3, 4};
    do {
      const std::size_t before = free_bytes();
      Holdings holdings(mode);
      for (const int what : order) {
        holdings.drop(what);
        free_bytes();
      }
      EXPECT_EQ(free_bytes(), before);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// 27: the same at the end of the process, where only the first dies in time.
TEST_F(PublicBugs, AProcessMayEndWithEverythingAlive) {
  const auto end = [](Mode mode, int first) {
    static Holdings* const kept = new Holdings(mode);
    static const std::unique_ptr<Holdings> owner(kept);  // dies after main
    kept->drop(first);
    std::exit(0);
  };
  for (const Mode mode : slot_modes()) {
    for (const int first : {-1, 0, 2})
      EXPECT_EXIT(end(mode, first), ::testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace slotgraph::properties

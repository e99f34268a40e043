#include "core/graph/run/run_tensors.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <set>

#include "core/device/device.h"

namespace slotgraph {
namespace {

// C-05: storages have numbers by their objects, so none may die while the run is watched: the next
// one would have its address, and look like a parameter, or like another saved tensor.
TEST(RunObserver, StoragesThatDieAtOnceAreNotTakenForOthers) {
  device::initialise();
  const auto module = std::make_shared<torch::nn::Module>("module");
  at::Tensor state = module->register_buffer("state", at::ones({4}, at::kCUDA));
  const GraphModule graph_module{module, nullptr};
  RunObserver observer(graph_module, state_of(graph_module), {}, "here");
  state.set_data(at::zeros({4}, at::kCUDA));  // what the module had is nobody's now
  constexpr std::size_t kSaved = 64;
  for (std::size_t i = 0; i < kSaved; ++i) observer.see_saved(at::ones({4}, at::kCUDA));
  std::set<int> numbers;
  for (const SavedTensor& saved : observer.tensors().saved) {
    EXPECT_TRUE(saved.internal) << "an activation, not module state";
    numbers.insert(saved.tensor.storage);
  }
  EXPECT_EQ(numbers.size(), kSaved);
}

}  // namespace
}  // namespace slotgraph

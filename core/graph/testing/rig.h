// A small call for tests: two variants of other sizes, a ring of two, one layer.
#ifndef CORE_GRAPH_TESTING_RIG_H_
#define CORE_GRAPH_TESTING_RIG_H_

#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/calling_thread.h"
#include "core/graph/graph_callables.h"

namespace slotgraph::testing {

inline constexpr std::int64_t kHidden = 8;

// P2 rank 0 without virtual stages, one layer, ring of two: the order of one variant is F F B B.
Plan small_plan();
// start, start + 0.01, ...
at::Tensor ramp(std::int64_t rows, double start);

// tanh(x W) W unless `forward` is set; the hook runs at the start of each forward with its number.
struct Rig {
  explicit Rig(std::function<void(int)> hook = nullptr);
  static std::int64_t rows_of(int branch) { return branch < 2 ? 3 : 6; }
  std::unique_ptr<CallableSet> capture(Mode mode = Mode::kPlacement);

  using Forward = std::function<Tensors(at::TensorList, const NamedTensors&)>;
  // Both variants run it.
  void set_forward(Forward forward);

  Plan plan = small_plan();
  std::shared_ptr<torch::nn::Module> module = std::make_shared<torch::nn::Module>("test");
  at::Tensor weight, buffer;
  int calls = 0;
  std::vector<GraphModule> modules;
  std::vector<Inputs> samples;
  Options options;
};

// The device, a current stream that is not the default one, backward on the calling thread.
struct DeviceTest : ::testing::Test {
  static void SetUpTestSuite();
  DeviceTest();
  static std::size_t allocated();  // bytes, once the device is idle

  c10::cuda::CUDAStreamGuard guard;
  CallingThreadGuard calling_thread;
};

// Doubles its first input, and saves the second one.
struct Saves : torch::autograd::Function<Saves> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& saved);
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& incoming);
};

// Captures that break a rule.
struct RulesTest : DeviceTest {
  // Captures in the mode and returns the rule; afterwards memory, hooks and flags are what they
  // were, and another rig works.
  static std::string broken(Rig& rig, Mode mode);
  static std::string broken(const Rig::Forward& forward, Mode mode);
};

at::Tensor gradient(const at::Tensor& output, const at::Tensor& input);
// Sizes, dtypes and values; undefined equals undefined.
bool same_bytes(const at::Tensor& a, const at::Tensor& b);

}  // namespace slotgraph::testing

#endif  // CORE_GRAPH_TESTING_RIG_H_

// The process runs with another allocator than the native caching one: BUILD sets the environment.
#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <gmock/gmock.h>

#include "core/device/device.h"
#include "core/graph/state/process_state.h"
#include "core/graph/testing/rig.h"
#include "core/testing/rule.h"

namespace slotgraph {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the rig's names

// The emulated runtime has no stream-ordered allocations. With that backend there is no memory on
// the device, and calls are made with tensors of the CPU: C07 comes before the rules of tensors.
bool has_memory() {
  return !device::capabilities().simulated ||
         c10::cuda::CUDACachingAllocator::get()->name() == "native";
}
at::Tensor ramp(std::int64_t rows, double start) {
  const at::Tensor values =
      (at::arange(rows * kHidden, at::kFloat) * 0.01 + start).view({rows, kHidden});
  return has_memory() ? values.to(at::kCUDA) : values;
}

struct Call {
  Call() {
    weight.mutable_grad() = ramp(kHidden, 7);
    const GraphModule graph_module{module, [this](at::TensorList in, const NamedTensors&) {
                                     ++calls;
                                     return Tensors{at::matmul(in[0], weight)};
                                   }};
    modules = {graph_module, graph_module};
    samples.assign(4, Inputs{{ramp(3, 0).requires_grad_(true)}, {}});
  }
  std::string refusal(Mode mode) {
    return rule([&] { graph_callables(modules, samples, plan.base_order, plan, {.mode = mode}); });
  }

  Plan plan = small_plan();
  std::shared_ptr<torch::nn::Module> module = std::make_shared<torch::nn::Module>("test");
  at::Tensor weight = module->register_parameter("weight", ramp(kHidden, -0.3));
  at::Tensor buffer = module->register_buffer("buffer", ramp(1, 0.5));
  int calls = 0;
  std::vector<GraphModule> modules;
  std::vector<Inputs> samples;
};

struct AllocatorBackend : DeviceTest {};

TEST_F(AllocatorBackend, C07NothingRunsAndNothingChanges) {
  for (const ModeTraits& traits : kModes) {
    const Mode mode = traits.mode;
    SCOPED_TRACE(traits.name);
    Call call;
    const at::Tensor grad = call.weight.grad(), generator = device::generator().get_state();
    for (const bool grad_mode : {true, false}) {
      const at::AutoGradMode set(grad_mode);
      EXPECT_EQ(call.refusal(mode), "C07");
      EXPECT_EQ(at::GradMode::is_enabled(), grad_mode);
    }
    EXPECT_EQ(call.calls, 0);
    EXPECT_FALSE(capturing());
    EXPECT_TRUE(call.weight.requires_grad() && call.samples[0].positional[0].requires_grad());
    EXPECT_TRUE(call.weight.grad().is_same(grad) && same_bytes(grad, ramp(kHidden, 7)));
    EXPECT_TRUE(same_bytes(call.weight, ramp(kHidden, -0.3)));
    EXPECT_TRUE(same_bytes(call.buffer, ramp(1, 0.5)));
    EXPECT_TRUE(same_bytes(device::generator().get_state(), generator));
  }
}

TEST_F(AllocatorBackend, EagerWorkIsFineAfterARefusal) {
  Call call;
  EXPECT_EQ(call.refusal(Mode::kPlacement), "C07");
  const at::Tensor& x = call.samples[0].positional[0];
  const at::Tensor y = call.modules[0].forward({x}, {})[0];
  const at::Tensor found = gradient(y, x);
  const auto on_cpu = [](const at::Tensor& tensor) { return tensor.detach().cpu(); };
  const at::Tensor leaf = on_cpu(x).requires_grad_(true);
  const at::Tensor truth = at::matmul(leaf, on_cpu(call.weight));
  // A GPU's matrix product adds in another order than the CPU's.
  const auto is = [](const at::Tensor& a, const at::Tensor& b) {
    return device::capabilities().simulated ? same_bytes(a, b) : at::allclose(a.cpu(), b);
  };
  EXPECT_TRUE(is(y, truth));
  EXPECT_TRUE(is(found, gradient(truth, leaf)));
}

TEST_F(AllocatorBackend, TheDeviceHasMemoryOrSaysThatItHasNone) {
  try {
    EXPECT_EQ(at::empty({1}, at::kCUDA).numel(), 1);
    EXPECT_TRUE(has_memory());
  } catch (const c10::Error& error) {
    EXPECT_FALSE(has_memory());
    EXPECT_THAT(error.what(), ::testing::HasSubstr("operation not supported"));
  }
}

}  // namespace
}  // namespace slotgraph

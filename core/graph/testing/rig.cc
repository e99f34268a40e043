#include "core/graph/testing/rig.h"

#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstring>

#include "core/device/device.h"
#include "core/graph/run/saved_hooks.h"
#include "core/graph/state/process_state.h"
#include "core/plan/planner.h"
#include "core/testing/rule.h"

namespace slotgraph::testing {

Plan small_plan() {
  PlanRequest request;
  request.name = "small";
  request.shape.pipeline_size = 2;
  request.layers_per_chunk = {1};
  request.cp_sizes = {2, 1};
  request.counts = {1, 2, 4};
  return make_plan(request);
}

at::Tensor ramp(std::int64_t rows, double start) {
  return (at::arange(rows * kHidden, at::kFloat) * 0.01 + start)
      .view({rows, kHidden})
      .to(at::kCUDA);
}

Rig::Rig(std::function<void(int)> hook) {
  weight = module->register_parameter("weight", ramp(kHidden, -0.3));
  buffer = module->register_buffer("buffer", ramp(1, 0.5));
  set_forward([this, hook = std::move(hook)](at::TensorList in, const NamedTensors&) -> Tensors {
    if (hook) hook(calls);
    return {at::matmul(at::tanh(at::matmul(in[0], weight)), weight)};
  });
  for (int branch = 0; branch < 4; ++branch)
    samples.push_back({{ramp(rows_of(branch), 0).requires_grad_(true)}, {}});
}

void Rig::set_forward(Forward forward) {
  const GraphModule graph_module{
      module, [this, forward = std::move(forward)](at::TensorList in, const NamedTensors& named) {
        Tensors outputs = forward(in, named);
        ++calls;
        return outputs;
      }};
  modules = {graph_module, graph_module};
}

std::unique_ptr<CallableSet> Rig::capture(Mode mode) {
  options.mode = mode;
  return graph_callables(modules, samples, plan.base_order, plan, options);
}

void DeviceTest::SetUpTestSuite() { device::initialise(); }
DeviceTest::DeviceTest() : guard(c10::cuda::getStreamFromPool()) {}

std::size_t DeviceTest::allocated() {
  device::synchronise();
  device::release_workspaces();
  return static_cast<std::size_t>(
      c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0].current);
}

at::Tensor Saves::forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                          const at::Tensor& saved) {
  context->save_for_backward({saved});
  return x * 2;
}

Tensors Saves::backward(torch::autograd::AutogradContext*, const Tensors& incoming) {
  return {incoming[0] * 2, at::Tensor()};
}

std::string RulesTest::broken(Rig& rig, Mode mode) {
  const std::size_t before = allocated();
  const std::string found = rule([&] { rig.capture(mode); });
  EXPECT_EQ(allocated(), before) << found;
  EXPECT_EQ(SavedTensorScope::depth(), 0);
  EXPECT_FALSE(capturing());
  Rig other;
  EXPECT_EQ(rule([&] { other.capture(mode); }), "");
  return found;
}

std::string RulesTest::broken(const Rig::Forward& forward, Mode mode) {
  Rig rig;
  rig.set_forward(forward);
  return broken(rig, mode);
}

at::Tensor gradient(const at::Tensor& output, const at::Tensor& input) {
  return torch::autograd::grad({output}, {input}, {at::ones_like(output)})[0];
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  const at::Tensor x = a.detach().to(at::kCPU).contiguous();
  const at::Tensor y = b.detach().to(at::kCPU).contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         (x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0);
}

}  // namespace slotgraph::testing

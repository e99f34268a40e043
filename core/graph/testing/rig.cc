#include "core/graph/testing/rig.h"

#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstring>

#include "core/device/device.h"

namespace slotgraph::testing {

Plan small_plan() {
  Plan plan;
  plan.name = "small";
  plan.shape = {2, 0, 0, 0};
  plan.layers_per_chunk = {1};
  plan.cp_sizes = {2, 1};
  plan.ring_length = 2;
  plan.covered_counts = {1, 2, 4};
  plan.base_order = training_order(plan.shape, 2);
  plan.user_grad_colours = {{0, 1}};
  for (int v = 0; v < 2; ++v) {
    for (int s = 0; s < 2; ++s) plan.slots.push_back({s, s, 2 * v + s, 0, 0, v, s});
  }
  return plan;
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
  return static_cast<std::size_t>(
      c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0].current);
}

at::Tensor gradient(const at::Tensor& output, const at::Tensor& input) {
  return torch::autograd::grad({output}, {input}, {at::ones_like(output)})[0];
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.detach().to(at::kCPU).contiguous(),
                   y = b.detach().to(at::kCPU).contiguous();
  return x.nbytes() == y.nbytes() &&
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

}  // namespace slotgraph::testing

#include "probes/staging_rig.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

namespace slotgraph::probes {

StagingRig::StagingRig(Plan the_plan, const Tensors& sample)
    : plan(std::move(the_plan)), module(std::make_shared<torch::nn::Module>("staging")) {
  weight = module->register_parameter("weight", values(kHidden, 1));
  for (int variant = 0; variant < plan.variants(); ++variant) {
    modules.push_back(
        {module, [this](at::TensorList in, const NamedTensors&) { return forward(in); }});
  }
  samples.assign(plan.slots.size(), {sample, {}});
}

// The second input takes part with its square, so that its gradient needs its saved value.
Tensors StagingRig::forward(at::TensorList inputs) const {
  const at::Tensor y = at::matmul(at::tanh(at::matmul(inputs[0], weight)), weight);
  return {inputs.size() == 1 ? y : y + (inputs[1] * inputs[1]).sum(0, /*keepdim=*/true)};
}

std::unique_ptr<CallableSet> StagingRig::capture(Mode mode) const {
  return graph_callables(modules, samples, plan.base_order, plan, {.mode = mode});
}

Flight begin(const at::Tensor& leaf, const Arguments& arguments) {
  return {leaf, arguments(leaf), {}, {}};
}

void backward(Flight& flight, const StagingRig& rig) {
  // Here, not after the forward: until now the frame must have kept it.
  flight.result.push_back(flight.outputs[0].detach().clone());
  const Tensors gradients = torch::autograd::grad({flight.outputs[0]}, {flight.leaf, rig.weight},
                                                  {values(flight.outputs[0].size(0), 77)});
  for (const at::Tensor& gradient : gradients) flight.result.push_back(gradient.clone());
}

Tensors eager_result(const StagingRig& rig, const at::Tensor& values, const Arguments& arguments) {
  Flight flight = begin(values.detach().clone().requires_grad_(true), arguments);
  flight.outputs = rig.forward(flight.inputs);
  backward(flight, rig);
  return flight.result;
}

int right_flights(CallableSet& set, const StagingRig& rig, const Arguments& arguments,
                  bool reversed) {
  const int frames = rig.plan.frames();
  std::vector<Flight> flights;
  for (int frame = 0; frame < frames; ++frame) {
    const auto seed = static_cast<std::uint64_t>(60 + frame);
    flights.push_back(begin(leaf(StagingRig::kRows, seed), arguments));
    flights.back().outputs = set.at(frame).forward({flights.back().inputs, {}});
  }
  for (int i = 0; i < frames; ++i) backward(flights[reversed ? frames - 1 - i : i], rig);
  set.end_step();
  int right = 0;
  for (const Flight& flight : flights)
    right += same_bytes(flight.result, eager_result(rig, flight.leaf, arguments));
  return right;
}

}  // namespace slotgraph::probes

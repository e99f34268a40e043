#include "probes/alias_rig.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "core/models/values.h"

namespace slotgraph::probes {
namespace {

at::Tensor incoming(const at::Tensor& output, int index) {
  return integer_values(output.sizes(), at::kFloat, 100 + static_cast<std::uint64_t>(index))
      .to(at::kCUDA);
}

}  // namespace

AliasRig::AliasRig() : module(std::make_shared<torch::nn::Module>("aliases")) {
  weight = module->register_parameter("weight", values(kHidden, 1));
  buffer = module->register_buffer("buffer", values(1, 2));
  modules = {{module, [this](at::TensorList in, const NamedTensors&) { return forward(in[0]); }}};
  for (int frame = 0; frame < plan.frames(); ++frame)
    samples.push_back({{leaf(kRows, 10 + static_cast<std::uint64_t>(frame))}, {}});
}

Tensors AliasRig::forward(const at::Tensor& x) {
  const at::Tensor y = at::tanh(at::matmul(x, weight)) + buffer;
  Tensors outputs(kAliasOutputs);
  outputs[kY] = y;
  outputs[kOverlap] = y.narrow(0, 1, kRows - 1);
  outputs[kExact] = y.view_as(y);
  outputs[kInputView] = x.narrow(0, 1, 2);
  outputs[kParameterView] = weight.narrow(0, 1, 2);
  outputs[kBufferView] = buffer.narrow(1, 1, 3);
  before_return(outputs);
  return outputs;
}

std::unique_ptr<CallableSet> AliasRig::capture(Mode mode) const {
  return graph_callables(modules, samples, plan.base_order, plan, {.mode = mode});
}

Tensors alias_gradients(const Tensors& outputs, const Tensors& wanted,
                        const std::vector<int>& through, bool explicit_zeros) {
  Tensors from, given;
  for (int i = 0; i < kDifferentiable; ++i) {
    const bool chosen = std::find(through.begin(), through.end(), i) != through.end();
    if (!chosen && !explicit_zeros) continue;
    from.push_back(outputs[i]);
    given.push_back(chosen ? incoming(outputs[i], i) : at::zeros_like(outputs[i]));
  }
  Tensors result = torch::autograd::grad(from, wanted, given, std::nullopt, false,
                                         /*allow_unused=*/true);
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = result[i].defined() ? result[i].clone() : at::zeros_like(wanted[i]).detach();
  return result;
}

}  // namespace slotgraph::probes

#include "probes/alias_rig.h"

#include <ATen/Functions.h>
#include <torch/nn/module.h>

namespace slotgraph::probes {

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

}  // namespace slotgraph::probes

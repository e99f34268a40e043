#include "core/graph/graph_module.h"

#include <torch/nn/module.h>

namespace slotgraph {

Tensors Inputs::all() const {
  Tensors result = positional;
  for (const auto& [name, tensor] : named) result.push_back(tensor);
  return result;
}

Inputs Inputs::with(const Tensors& all) const {
  Inputs result;
  const auto split = all.begin() + static_cast<std::ptrdiff_t>(positional.size());
  result.positional.assign(all.begin(), split);
  for (std::size_t i = 0; i < named.size(); ++i)
    result.named.emplace_back(named[i].first, *(split + static_cast<std::ptrdiff_t>(i)));
  return result;
}

Tensors parameters_of(const GraphModule& module) { return module.module->parameters(); }

Tensors buffers_of(const GraphModule& module) { return module.module->buffers(); }

Tensors state_of(const GraphModule& module) {
  Tensors result = parameters_of(module);
  for (const at::Tensor& buffer : buffers_of(module)) {
    if (buffer.defined()) result.push_back(buffer);
  }
  return result;
}

Tensors trainable_parameters(const GraphModule& module) {
  Tensors result;
  for (const at::Tensor& parameter : parameters_of(module)) {
    if (parameter.requires_grad()) result.push_back(parameter);
  }
  return result;
}

std::string name_of(const GraphModule& module) { return module.module->name(); }

}  // namespace slotgraph

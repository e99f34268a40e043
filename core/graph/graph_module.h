// What a user hands in for capture: a module and how to call it.
//
// Rules of the published runtime (runtime.md) that concern Python objects, and what stands for them
// here:
//   pytree flattening of arguments   inputs are a list of positional tensors and a list of named
//   tensors module.forward replaced           a Callable is a separate object; the module is never
//   changed forward/backward module hooks     libtorch modules have none; callbacks in Options come
//   with their own issue training/eval dispatch            the module's flag at capture time is
//   what the graph holds autocast cache                    refused: autocast must be off during the
//   call garbage collection freeze         does not apply: destruction is deterministic
#ifndef CORE_GRAPH_GRAPH_MODULE_H_
#define CORE_GRAPH_GRAPH_MODULE_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;  // its header costs seconds in every file
}

namespace slotgraph {

using Tensors = std::vector<at::Tensor>;
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// One layer in one variant. Variants of a layer usually share `module` and differ in what `forward`
// sets up.
struct GraphModule {
  std::shared_ptr<torch::nn::Module> module;  // its parameters and buffers are the frame's
  std::function<Tensors(at::TensorList inputs, const NamedTensors& named)> forward;
};

// The inputs of one call: CUDA tensors. Gradients are returned for those that require grad.
struct Inputs {
  Tensors positional;
  NamedTensors named;

  // Positional first, then named in their order: the order of roles and of gradients.
  Tensors all() const;
  // The same structure over other tensors.
  Inputs with(const Tensors& all) const;
};

// In registration order, submodules included.
Tensors parameters_of(const GraphModule& module);
Tensors buffers_of(const GraphModule& module);
Tensors trainable_parameters(const GraphModule& module);  // those that require grad
std::string name_of(const GraphModule& module);

}  // namespace slotgraph

#endif  // CORE_GRAPH_GRAPH_MODULE_H_

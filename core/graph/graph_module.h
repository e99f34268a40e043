// What a user hands in for capture: a module and how to call it.
//
// Rules of the published Python runtime that speak of Python, and what stands for them here. The
// others are named where they are checked: core/plan/capture_call.h and graph_callables.h.
//
//   rule              here
//   C00               a GraphModule without module or without forward
//   C16, C26          no equivalent: types are checked by the compiler, inputs are lists
//   C08, C09          no equivalent: the allocator's entry points are linked
//   C17, C22          no equivalent: modules have no hooks, settings can always be set
//   C19, C20          undefined tensors, or such as no_static_place() names
//   W02, W06          what not_plain() names stands for tensor subclasses
//   L00, K08, P02     no equivalent: one entry point, no delayed weight gradients (OP5), no cache
//                     of quantised parameters
//   K06               a parameter's gradient that is not plain; gradients are never copied to
//                     addresses of another branch, so there is nothing that they must fit into
//   K09b, K10         no equivalent: a group's checkpoints live in one scope
//   P04               no equivalent: outputs and gradients are lists
//   call operator, garbage collection    never changed
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
  // Tensors that the module keeps between calls besides parameters and buffers, as far as forward
  // makes new ones: a retained output, say. Captured memory that lives on must have an owner, and
  // is sought here. May be empty.
  std::function<Tensors()> held = nullptr;
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
Tensors state_of(const GraphModule& module);  // parameters, then buffers; the defined ones
Tensors trainable_parameters(const GraphModule& module);  // those that require grad
std::string name_of(const GraphModule& module);

}  // namespace slotgraph

#endif  // CORE_GRAPH_GRAPH_MODULE_H_

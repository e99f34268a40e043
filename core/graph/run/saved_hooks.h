// Sees every tensor that autograd saves, without Python.
#ifndef CORE_GRAPH_RUN_SAVED_HOOKS_H_
#define CORE_GRAPH_RUN_SAVED_HOOKS_H_

#include <ATen/core/Tensor.h>

#include <functional>

namespace slotgraph {

// While alive, `pack` is called for every tensor that autograd saves on this thread, in order, and
// what it returns is what the backward reads: a tensor of equal sizes, strides and dtype. Scopes
// nest; the inner one is called. The tensor given is detached but has the version counter of the
// saved one. `pack` must not change it.
//
// Autograd skips its check for in-place changes of saved tensors that went through a hook. Wrapped
// numbers, and tensors that a function keeps outside of its saved variables, are not seen.
//
// The first scope replaces the default engine of the process for good: engines alone can return
// hooks in C++. The new engine differs in nothing else.
class SavedTensorScope {
 public:
  using Pack = std::function<at::Tensor(const at::Tensor&)>;
  explicit SavedTensorScope(Pack pack);
  ~SavedTensorScope();
  SavedTensorScope(const SavedTensorScope&) = delete;
  SavedTensorScope& operator=(const SavedTensorScope&) = delete;

  // How many scopes are open on this thread.
  static int depth();

 private:
  Pack pack_;
  Pack* outer_;
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_RUN_SAVED_HOOKS_H_

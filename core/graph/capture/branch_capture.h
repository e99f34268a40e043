// Captures one branch: forward now, backward later, when the order comes to it.
#ifndef CORE_GRAPH_CAPTURE_BRANCH_CAPTURE_H_
#define CORE_GRAPH_CAPTURE_BRANCH_CAPTURE_H_

#include <memory>
#include <optional>

#include "core/graph/capture/capture.h"
#include "core/graph/captured_branch.h"
#include "core/graph/graph_module.h"
#include "core/graph/warmup/profile.h"

namespace slotgraph {

// A branch between the capture of its forward and that of its backward: the autograd graph is
// alive.
struct OpenBranch {
  // Graphs, module, inputs, parameters and `differentiable`; the rest is empty.
  CapturedBranch branch;
  Tensors inputs;   // leaves over the static inputs
  Tensors outputs;  // with their autograd graph
  std::shared_ptr<const Recording> forward_recording;
  std::shared_ptr<const Recording> backward_recording;
  std::size_t copied_bytes = 0;  // by its graphs
  // Storages of what the forward saved and was copied: autograd keeps some of them for as long as
  // its graph, though nothing reads them.
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> originals;

  void drop_autograd_graph() {
    inputs.clear();
    outputs.clear();
  }
};

// Where a branch's tensors are copied to while it is captured: a tensor over each place, undefined
// where the tensor stays where it is. A list may be empty: nothing of its kind is copied. Outputs
// of one storage share a storage here too.
struct CopyTargets {
  Tensors saved;
  Tensors outputs;
  Tensors gradients;  // of inputs
};

// What one capture is told about memory. As it is made by default, everything is born where the
// allocator puts it, and stays there.
struct CaptureMemory {
  std::optional<PlacementPlan> births;  // where allocations are born
  CopyTargets copies;
};

// What one branch is captured from.
struct BranchSource {
  const GraphModule& module;
  const Inputs& sample;
  const BranchProfile& profile;  // of the module: unless it is kFree, its runs must come again
  std::string where;             // for errors
};

// `inputs`: over the static places, with the sample's gradient wishes. Throws Error: K01 the
// forward saves more or fewer tensors than in warm-up, K02 one of another signature, or that
// aliases otherwise, K03 an external one of another storage, W06 and K04 other outputs; PS01 a
// write to an input.
OpenBranch capture_forward(const BranchSource& source, const Tensors& inputs,
                           const CaptureSite& site, CaptureMemory memory);

// Captures the backward and returns its gradients, which still own their memory, of inputs and
// parameters. Those with a place are copied there at its end. Throws Error: K05 other gradients of
// inputs than in warm-up, K07 of parameters.
Tensors capture_backward(OpenBranch& open, const BranchSource& source, const Tensors& incoming,
                         const CaptureSite& site, CaptureMemory memory);

}  // namespace slotgraph

#endif  // CORE_GRAPH_CAPTURE_BRANCH_CAPTURE_H_

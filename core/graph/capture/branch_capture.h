// Captures one branch: forward now, backward later, when the order comes to it.
#ifndef CORE_GRAPH_CAPTURE_BRANCH_CAPTURE_H_
#define CORE_GRAPH_CAPTURE_BRANCH_CAPTURE_H_

#include <memory>
#include <optional>

#include "core/graph/capture/capture.h"
#include "core/graph/graph_module.h"
#include "core/graph/replay/branch.h"

namespace slotgraph {

// A branch between the capture of its forward and that of its backward: the autograd graph is
// alive.
struct OpenBranch {
  CapturedBranch branch;  // graphs, inputs, input_gradients, parameters, differentiable; the rest
                          // is still empty
  Tensors inputs;         // leaves over the static inputs
  Tensors outputs;        // with their autograd graph
  std::shared_ptr<const Recording> forward_recording;
  std::shared_ptr<const Recording> backward_recording;
};

// `static_inputs` are tensors over the static places, with the sample's gradient wishes.
OpenBranch capture_forward(const GraphModule& module, const Inputs& sample,
                           const Tensors& static_inputs, c10::MempoolId_t pool,
                           std::optional<PlacementPlan> plan);

// Captures the backward and returns its gradients, which still own their memory. With
// `copy_leading_to` the capture ends with a copy of the leading input's gradient to that tensor.
Tensors capture_backward(OpenBranch& open, const Tensors& incoming,
                         const at::Tensor& copy_leading_to, c10::MempoolId_t pool,
                         std::optional<PlacementPlan> plan);

}  // namespace slotgraph

#endif  // CORE_GRAPH_CAPTURE_BRANCH_CAPTURE_H_

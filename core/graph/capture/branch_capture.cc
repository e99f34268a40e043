#include "core/graph/capture/branch_capture.h"

#include "core/graph/warmup/profile.h"

namespace slotgraph {

OpenBranch capture_forward(const GraphModule& module, const Inputs& sample,
                           const Tensors& static_inputs, c10::MempoolId_t pool,
                           std::optional<PlacementPlan> plan) {
  OpenBranch open;
  open.inputs = static_inputs;
  open.branch.parameters = trainable_parameters(module);
  for (const at::Tensor& input : static_inputs) {
    open.branch.inputs.push_back(input.detach());
    open.branch.input_gradients.push_back(input.requires_grad());
  }
  const Inputs arguments = sample.with(static_inputs);
  Captured captured = capture(pool, std::move(plan), [&] {
    open.outputs = module.forward(arguments.positional, arguments.named);
  });
  open.branch.forward = std::move(captured.graph);
  open.forward_recording = std::move(captured.recording);
  for (const at::Tensor& output : open.outputs)
    open.branch.differentiable.push_back(output.requires_grad());
  return open;
}

Tensors capture_backward(OpenBranch& open, const Tensors& incoming,
                         const at::Tensor& copy_leading_to, c10::MempoolId_t pool,
                         std::optional<PlacementPlan> plan) {
  Tensors gradients;
  Captured captured = capture(pool, std::move(plan), [&] {
    gradients = run_backward(open.outputs, open.inputs, open.branch.parameters, incoming);
    if (copy_leading_to.defined()) at::Tensor(copy_leading_to).copy_(gradients[0]);
  });
  open.branch.backward = std::move(captured.graph);
  open.backward_recording = std::move(captured.recording);
  open.branch.incoming = incoming;
  return gradients;
}

}  // namespace slotgraph

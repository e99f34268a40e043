#include "core/graph/replay/branch.h"

#include <ATen/ops/clone.h>
#include <ATen/ops/zeros_like.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/grad_mode.h>

#include "core/error.h"

namespace slotgraph {

void ReplayContext::order_after_last_replay() {
  if (last_) last_->block(c10::cuda::getCurrentCUDAStream().unwrap());
}

void ReplayContext::note_replay() {
  if (!last_) last_.emplace(c10::DeviceType::CUDA);
  last_->record(c10::cuda::getCurrentCUDAStream().unwrap());
}

struct ReplayCallable::Shared {
  int index;
  CapturedBranch branch;
  std::shared_ptr<ReplayContext> context;
};

// The autograd node of one flight. Its inputs are the inputs and parameters of the frame, its
// outputs the differentiable outputs.
struct ReplayNode final : torch::autograd::Node {
  ReplayNode(std::shared_ptr<ReplayCallable::Shared> shared, std::uint64_t generation)
      : shared(std::move(shared)), generation(generation) {}
  ~ReplayNode() override {
    const std::lock_guard lock(shared->context->mutex);
    shared->context->flight.leave(shared->index, generation);
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& incoming) override;
  std::string name() const override { return "SlotGraphBackward"; }

  std::shared_ptr<ReplayCallable::Shared> shared;
  std::uint64_t generation;
};

torch::autograd::variable_list ReplayNode::apply(torch::autograd::variable_list&& incoming) {
  const at::NoGradGuard no_grad;
  CapturedBranch& branch = shared->branch;
  ReplayContext& context = *shared->context;
  const std::lock_guard lock(context.mutex);
  context.flight.check_backward(shared->index, generation);
  context.order_after_last_replay();
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    if (!incoming[i].defined()) incoming[i] = at::zeros_like(branch.incoming[i]);
  }
  parallel_move(incoming, branch.incoming);
  branch.backward->replay();
  torch::autograd::variable_list result;
  for (std::size_t i = 0; i < branch.gradients.size(); ++i) {
    const at::Tensor& gradient = branch.gradients[i];
    const bool stays = i == 0 && branch.leading_stays;
    result.push_back(!gradient.defined() ? gradient : stays ? gradient.detach() : gradient.clone());
  }
  context.note_replay();
  context.flight.backward(shared->index, generation);
  return result;
}

namespace {

void check_inputs(const CapturedBranch& branch, const Tensors& inputs, int index) {
  const auto describe = [](const at::Tensor& tensor) {
    std::ostringstream text;
    if (!tensor.defined()) return std::string("an undefined tensor");
    text << tensor.scalar_type() << tensor.sizes() << " on " << tensor.device();
    return text.str();
  };
  const std::string where = fmt::format("forward of branch {}", index);
  if (inputs.size() != branch.inputs.size()) {
    throw Error({"R01", where, fmt::format("{} inputs", inputs.size()),
                 fmt::to_string(branch.inputs.size()), "pass the inputs of the sample"});
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& expected = branch.inputs[i];
    const bool same = inputs[i].defined() && inputs[i].sizes() == expected.sizes() &&
                      inputs[i].scalar_type() == expected.scalar_type() &&
                      inputs[i].device() == expected.device();
    if (same) continue;
    throw Error({"R01", fmt::format("{}, input {}", where, i), describe(inputs[i]),
                 describe(expected), "pass tensors like the sample"});
  }
}

}  // namespace

ReplayCallable::ReplayCallable(int index, CapturedBranch branch,
                               std::shared_ptr<ReplayContext> context)
    : shared_(std::make_shared<Shared>(Shared{index, std::move(branch), std::move(context)})) {}

Tensors ReplayCallable::forward(const Inputs& inputs) {
  CapturedBranch& branch = shared_->branch;
  ReplayContext& context = *shared_->context;
  const Tensors given = inputs.all();
  check_inputs(branch, given, shared_->index);
  std::uint64_t generation = 0;
  Tensors outputs;
  {
    const at::NoGradGuard no_grad;
    const std::lock_guard lock(context.mutex);
    generation = context.flight.enter(shared_->index);
    try {
      context.order_after_last_replay();
      parallel_move(given, branch.inputs);
      branch.forward->replay();
      context.note_replay();
      for (const at::Tensor& output : branch.outputs) outputs.push_back(output.detach());
    } catch (...) {
      context.flight.leave(shared_->index, generation);
      throw;
    }
  }
  if (!branch.backward || !at::GradMode::is_enabled()) return outputs;
  const std::shared_ptr<ReplayNode> node(new ReplayNode(shared_, generation),
                                         torch::autograd::deleteNode);
  torch::autograd::edge_list edges;
  for (std::size_t i = 0; i < given.size(); ++i) {
    edges.push_back(branch.input_gradients[i] ? torch::autograd::impl::gradient_edge(given[i])
                                              : torch::autograd::Edge());
  }
  for (const at::Tensor& parameter : branch.parameters)
    edges.push_back(torch::autograd::impl::gradient_edge(parameter));
  node->set_next_edges(std::move(edges));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (branch.differentiable[i]) torch::autograd::set_history(outputs[i], node);
  }
  return outputs;
}

void ReplayCallable::release() {
  const std::lock_guard lock(shared_->context->mutex);
  shared_->context->flight.leave(shared_->index);
}

}  // namespace slotgraph

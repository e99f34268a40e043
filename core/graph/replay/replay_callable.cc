#include "core/graph/replay/replay_callable.h"

#include <ATen/ops/clone.h>
#include <ATen/ops/zeros_like.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/nn/module.h>

#include "core/error.h"
#include "core/graph/replay/arguments.h"
#include "core/graph/replay/parallel_move.h"
#include "core/trace/steps.h"

namespace slotgraph {

ReplayContext::ReplayContext(std::vector<FlightPlan> flights, const Options& options)
    : flight(std::move(flights)), borrower(options.borrow_parameter_gradients) {
  if (options.checking) leases.emplace();
}

std::unique_lock<std::mutex> ReplayContext::lock() {
  if (lending_ == std::this_thread::get_id()) {
    throw Error(Error::kContract,
                {"P10", "borrower of parameter gradients", "a call of the set that lends them",
                 "none: the next replay overwrites what is lent",
                 "use the gradients, and return before the next call"});
  }
  return std::unique_lock(mutex_);
}

void ReplayContext::order_after_last_replay() {
  if (last_) last_->block(c10::cuda::getCurrentCUDAStream().unwrap());
}

void ReplayContext::note_replay() {
  if (!last_) last_.emplace(c10::DeviceType::CUDA);
  last_->record(c10::cuda::getCurrentCUDAStream().unwrap());
}

void ReplayContext::lend_gradients(int branch, const Tensors& gradients) {
  struct Lending {
    explicit Lending(std::atomic<std::thread::id>& id) : id(id) { id = std::this_thread::get_id(); }
    ~Lending() { id = std::thread::id(); }
    std::atomic<std::thread::id>& id;
  };
  const Lending lending(lending_);
  if (!leases) {
    borrower(branch, gradients);
    return;
  }
  auto [lent, lease] =
      LeaseBook::lend(gradients, fmt::format("parameter gradient lent by branch {}", branch));
  borrower(branch, lent);
  leases->end(std::move(lease), true);
}

void ReplayContext::end_flight(int branch, std::uint64_t generation) {
  std::unique_lock<std::mutex> held;
  if (lending_ != std::this_thread::get_id()) held = std::unique_lock(mutex_);
  flight.leave(branch, generation);
}

struct ReplayCallable::Shared {
  int index;
  std::optional<CapturedBranch> branch;  // none after reset
  std::shared_ptr<ReplayContext> context;

  CapturedBranch& captured(const char* what) {
    if (branch) return *branch;
    throw Error(Error::kContract,
                {"P09", fmt::format("{} of branch {}", what, index), "a branch that was reset",
                 "one that still has its graphs", "capture it again"});
  }
  void check_state() const {
    for (std::size_t i = 0; i < branch->state.size(); ++i) {
      if (branch->state[i].const_data_ptr() == branch->state_places[i]) continue;
      throw Error(Error::kContract,
                  {"P13", fmt::format("parameter or buffer {} of branch {}", i, index),
                   "other memory than at the capture", "the memory that the graphs read",
                   "update state in place (copy_, mul_, add_), or capture again"});
    }
  }
};

namespace {

// Runs `work` where the options say, and makes the current stream wait for it.
template <typename Work>
void on_replay_stream(const ReplayOptions& options, const Work& work) {
  const c10::cuda::CUDAStream here = c10::cuda::getCurrentCUDAStream();
  if (!options.stream || *options.stream == here) {
    work();
    return;
  }
  c10::Event ready(c10::DeviceType::CUDA);
  ready.record(here.unwrap());
  ready.block(options.stream->unwrap());
  {
    const c10::cuda::CUDAStreamGuard there(*options.stream);
    work();
  }
  if (options.done) {
    options.done->block(here.unwrap());
    return;
  }
  c10::Event done(c10::DeviceType::CUDA);
  done.record(options.stream->unwrap());
  done.block(here.unwrap());
}

// A copy that its consumer owns, made on the replay's stream and used on another one.
at::Tensor owned_copy(const at::Tensor& gradient, c10::cuda::CUDAStream consumer) {
  at::Tensor copy = gradient.clone();
  if (consumer != c10::cuda::getCurrentCUDAStream()) copy.record_stream(consumer.unwrap());
  return copy;
}

}  // namespace

// The autograd node of one flight. Its inputs are the inputs and parameters of the frame, its
// outputs the differentiable outputs.
struct ReplayNode final : torch::autograd::Node {
  ReplayNode(std::shared_ptr<ReplayCallable::Shared> shared, std::uint64_t generation,
             ReplayOptions options)
      : shared(std::move(shared)), generation(generation), options(std::move(options)) {}
  ~ReplayNode() override { shared->context->end_flight(shared->index, generation); }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& incoming) override;
  std::string name() const override { return "SlotGraphBackward"; }

  void check(const torch::autograd::variable_list& incoming);
  torch::autograd::variable_list returned(c10::cuda::CUDAStream consumer);

  std::shared_ptr<ReplayCallable::Shared> shared;
  std::uint64_t generation;
  ReplayOptions options;
};

// Everything that can be refused, before anything is copied.
void ReplayNode::check(const torch::autograd::variable_list& incoming) {
  ReplayContext& context = *shared->context;
  const CapturedBranch& branch = shared->captured("backward");
  context.flight.check_backward(shared->index, generation);
  check_incoming(incoming, branch.incoming, shared->index);
  shared->check_state();
  if (!context.leases) return;
  context.leases->check_outputs(shared->index);
  const FlightPlan& plan = context.flight.plan(shared->index);
  context.leases->begin_backward({plan.chunk, plan.physical_slot});
  if (plan.gradient_colour) context.leases->enter_gradient(*plan.gradient_colour);
}

torch::autograd::variable_list ReplayNode::returned(c10::cuda::CUDAStream consumer) {
  CapturedBranch& branch = *shared->branch;
  ReplayContext& context = *shared->context;
  torch::autograd::variable_list result;
  const std::size_t inputs = branch.inputs.size();
  for (std::size_t i = 0; i < inputs; ++i) {
    const at::Tensor& gradient = branch.gradients[i];
    const bool stays = i == 0 && branch.leading_stays;
    if (!gradient.defined()) {
      result.emplace_back();
    } else if (!stays) {
      result.push_back(owned_copy(gradient, consumer));
    } else if (!context.leases) {
      result.push_back(gradient.detach());
    } else {
      auto [lent, lease] = LeaseBook::lend(
          {gradient}, fmt::format("gradient of the leading input of branch {}", shared->index));
      context.leases->lend_gradient(*context.flight.plan(shared->index).gradient_colour,
                                    std::move(lease));
      result.push_back(lent[0]);
    }
  }
  const Tensors parameters(branch.gradients.begin() + static_cast<std::ptrdiff_t>(inputs),
                           branch.gradients.end());
  if (context.borrower) context.lend_gradients(shared->index, parameters);
  for (const at::Tensor& gradient : parameters) {
    const bool copied = gradient.defined() && !context.borrower;
    result.push_back(copied ? owned_copy(gradient, consumer) : at::Tensor());
  }
  return result;
}

torch::autograd::variable_list ReplayNode::apply(torch::autograd::variable_list&& incoming) {
  const at::NoGradGuard no_grad;
  ReplayContext& context = *shared->context;
  const trace::PhaseScope phase(trace::Phase::replay_backward);
  const auto lock = context.lock();
  check(incoming);
  CapturedBranch& branch = *shared->branch;
  context.order_after_last_replay();
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    if (!incoming[i].defined()) incoming[i] = at::zeros_like(branch.incoming[i]);
  }
  parallel_move(incoming, branch.incoming);
  const c10::cuda::CUDAStream consumer = c10::cuda::getCurrentCUDAStream();
  torch::autograd::variable_list result;
  on_replay_stream(options, [&] {
    trace::reached(trace::Step::before_backward_replay);
    branch.backward->replay();
    trace::reached(trace::Step::after_backward_replay);
    result = returned(consumer);
    context.note_replay();
  });
  context.flight.backward(shared->index, generation);
  if (context.leases) context.leases->end_outputs(shared->index);
  return result;
}

ReplayCallable::ReplayCallable(int index, CapturedBranch branch,
                               std::shared_ptr<ReplayContext> context)
    : shared_(std::make_shared<Shared>(Shared{index, std::move(branch), std::move(context)})) {}

Tensors ReplayCallable::replay(const Tensors& given, const ReplayOptions& options,
                               std::uint64_t& generation) {
  CapturedBranch& branch = *shared_->branch;
  ReplayContext& context = *shared_->context;
  const int colour = context.flight.plan(shared_->index).colour;
  generation = context.flight.enter(shared_->index);
  try {
    if (context.leases) context.leases->enter(colour);
    context.order_after_last_replay();
    parallel_move(given, branch.inputs);
    on_replay_stream(options, [&] {
      trace::reached(trace::Step::before_forward_replay);
      branch.forward->replay();
      trace::reached(trace::Step::after_forward_replay);
      context.note_replay();
    });
  } catch (...) {
    context.flight.leave(shared_->index, generation);
    throw;
  }
  if (!context.leases) {
    Tensors outputs;
    for (const at::Tensor& output : branch.outputs)
      outputs.push_back(output.defined() ? output.detach() : output);
    return outputs;
  }
  Tensors lendable;
  for (std::size_t i = 0; i < branch.outputs.size(); ++i)
    lendable.push_back(branch.lent[i] ? branch.outputs[i] : at::Tensor());
  auto [lent, lease] =
      LeaseBook::lend(lendable, fmt::format("output of branch {}", shared_->index));
  context.leases->lend_outputs(shared_->index, colour, std::move(lease));
  for (std::size_t i = 0; i < branch.outputs.size(); ++i) {
    if (!branch.lent[i] && branch.outputs[i].defined()) lent[i] = branch.outputs[i].detach();
  }
  return lent;
}

Tensors ReplayCallable::forward(const Inputs& inputs, const ReplayOptions& options) {
  std::unique_lock lock = shared_->context->lock();
  const CapturedBranch& branch = shared_->captured("forward");
  if (branch.module.module->is_training() != branch.training) {
    const GraphModule module = branch.module;
    lock.unlock();
    return module.forward(inputs.positional, inputs.named);
  }
  const trace::PhaseScope phase(trace::Phase::replay_forward);
  const Tensors given = arguments_of(inputs, branch.positional, branch.names, shared_->index);
  check_inputs(given, branch.inputs, shared_->index);
  shared_->check_state();
  std::uint64_t generation = 0;
  Tensors outputs;
  {
    const at::NoGradGuard no_grad;
    outputs = replay(given, options, generation);
  }
  lock.unlock();  // a node that dies takes it
  if (!branch.backward || !at::GradMode::is_enabled()) return outputs;
  const std::shared_ptr<ReplayNode> node(new ReplayNode(shared_, generation, options),
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

Tensors ReplayCallable::static_inputs() const {
  const auto lock = shared_->context->lock();
  Tensors result;
  for (const at::Tensor& input : shared_->captured("static inputs").inputs)
    result.push_back(input.detach());
  return result;
}

void ReplayCallable::release() {
  const auto lock = shared_->context->lock();
  shared_->context->flight.leave(shared_->index);
  if (shared_->context->leases) shared_->context->leases->end_outputs(shared_->index);
}

void ReplayCallable::reset() {
  const auto lock = shared_->context->lock();
  shared_->context->flight.leave(shared_->index);
  if (shared_->context->leases) shared_->context->leases->end_outputs(shared_->index);
  shared_->branch.reset();
}

const Ownership& ReplayCallable::ownership() const {
  return shared_->captured("ownership").ownership;
}

}  // namespace slotgraph

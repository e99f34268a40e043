#include "fuzz/execute/driver.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/graph/calling_thread.h"
#include "core/models/values.h"

namespace slotgraph::fuzz {

int Driver::branch(const Coordinate& place, int variant) const {
  const Plan& plan = model_.spec().plan;
  return plan.branch(variant, place.chunk, plan.slot_of(place.microbatch), place.layer);
}

void Driver::run() {
  const CallingThreadGuard guard;
  model_.reset();
  for (int i = 0; i < model_.spec().steps; ++i) step(i);
}

void Driver::step(int step) {
  const Case& spec = model_.spec();
  const auto& variants = spec.schedule.variants;
  for (const OrderEvent& event :
       events(training_order(spec.plan.shape, static_cast<int>(variants.size())))) {
    const Coordinate place{step, event.microbatch, event.chunk, 0};
    if (event.forward) {
      forward(place, variants[event.microbatch]);
    } else {
      backward(place, variants[event.microbatch]);
    }
  }
  end_step(step);
}

void Driver::forward(const Coordinate& event, int variant) {
  at::Tensor first;
  for (int layer = 0; layer < model_.spec().plan.layers_per_chunk[event.chunk]; ++layer) {
    const Coordinate place{event.step, event.microbatch, event.chunk, layer};
    if (layer == 0) first = model_.first_input(place, variant);
    Flight flight{model_.inputs(place, variant, first), {}};
    const Replay replay{branch(place, variant), place};
    tell(&ReplayWatcher::before_forward, replay);
    flight.outputs = callables_.at(replay.branch).forward(flight.inputs);
    tell(&ReplayWatcher::after_forward, replay, flight.outputs);
    ++replays_;
    for (std::size_t i = 0; i < flight.outputs.size(); ++i) {
      observer_.observe(place, fmt::format("output {} when returned", i), flight.outputs[i]);
    }
    first = flight.outputs[0].detach();
    flights_[{place.microbatch, place.chunk, layer}] = std::move(flight);
  }
}

void Driver::backward(const Coordinate& event, int variant) {
  const int layers = model_.spec().plan.layers_per_chunk[event.chunk];
  if (layers == 0) {
    const int slot = model_.spec().plan.slot_of(event.microbatch);
    callables_.note_empty_backward(event.chunk, slot);
    tell(&ReplayWatcher::empty_backward, event.chunk, slot);
  }
  at::Tensor incoming;
  for (int layer = layers - 1; layer >= 0; --layer) {
    const Coordinate place{event.step, event.microbatch, event.chunk, layer};
    const at::Tensor& output = flights_.at({place.microbatch, place.chunk, layer}).outputs[0];
    if (layer == layers - 1) incoming = model_.output_gradient(place, output, 0);
    incoming = backward_layer(place, variant, incoming);
  }
  observe_again(until_next_backward_, "after the next backward event");
  if (incoming.defined()) {
    until_next_backward_.push_back(
        {{event.step, event.microbatch, event.chunk, 0}, "gradient of input 0", incoming});
  }
}

void Driver::observe_again(std::vector<Revisit>& kept, const char* when) {
  for (const Revisit& one : kept) {
    observer_.observe(one.place, fmt::format("{} {}", one.what, when), one.tensor);
  }
  kept.clear();
}

at::Tensor Driver::backward_layer(const Coordinate& place, int variant,
                                  const at::Tensor& incoming) {
  const auto key = std::tuple(place.microbatch, place.chunk, place.layer);
  Flight flight = std::move(flights_.at(key));
  flights_.erase(key);
  for (std::size_t i = 0; i < flight.outputs.size(); ++i) {
    observer_.observe(place, fmt::format("output {} before its backward", i), flight.outputs[i]);
  }
  const int flat = model_.flat_layer(place.chunk, place.layer);
  const Replay replay{branch(place, variant), place};
  // Also where the only parameter that requires grad is not used.
  if (!flight.outputs[0].requires_grad()) {
    callables_.at(replay.branch).release();
    tell(&ReplayWatcher::release, replay);
    return {};
  }
  const Tensors inputs = flight.inputs.all();
  Tensors sources = inputs;  // of gradients
  const Tensors parameters = trainable_parameters(model_.module(flat));
  sources.insert(sources.end(), parameters.begin(), parameters.end());
  const std::vector<std::size_t> asked = asked_gradients(place, sources);
  Tensors wanted;
  for (const std::size_t i : asked) wanted.push_back(sources[i]);
  const auto [outputs, incoming_gradients] = gradients_of_outputs(place, flight, incoming);
  tell(&ReplayWatcher::before_backward, replay);
  const Tensors found =
      torch::autograd::grad(outputs, wanted, incoming_gradients, std::nullopt, false, true);
  ++replays_;
  Tensors gradients(sources.size());
  for (std::size_t i = 0; i < asked.size(); ++i) gradients[asked[i]] = found[i];
  tell(&ReplayWatcher::after_backward, replay, gradients);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::string what = i < inputs.size()
                                 ? fmt::format("gradient of input {}", i)
                                 : fmt::format("gradient of parameter {}", i - inputs.size());
    observer_.observe(place, what + " when returned", gradients[i]);
    if (i > 0 && gradients[i].defined()) until_end_of_step_.push_back({place, what, gradients[i]});
  }
  accumulate(flat, gradients, inputs.size());
  return gradients[0];
}

std::vector<std::size_t> Driver::asked_gradients(const Coordinate& place,
                                                 const Tensors& sources) const {
  const Case& spec = model_.spec();
  std::vector<std::size_t> all, some;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].requires_grad()) continue;
    all.push_back(i);
    const auto number = [](int value) { return static_cast<std::uint64_t>(value); };
    const std::uint64_t draw = mix({spec.seed, number(place.step), number(place.microbatch),
                                    number(model_.flat_layer(place.chunk, place.layer)), i});
    // The layer before needs the first one.
    if (i == 0 || draw % 2 == 0) some.push_back(i);
  }
  return spec.partial_backward && !some.empty() ? some : all;
}

std::pair<Tensors, Tensors> Driver::gradients_of_outputs(const Coordinate& place,
                                                         const Flight& flight,
                                                         const at::Tensor& incoming) const {
  const at::Tensor& first = flight.outputs[0];
  Tensors outputs{first};
  Tensors gradients{to_layout(incoming, first.sizes(), first.strides())};
  for (std::size_t i = 1; i < flight.outputs.size(); ++i) {
    const at::Tensor& output = flight.outputs[i];
    if (!output.defined() || !output.requires_grad()) continue;
    const bool missing = (static_cast<std::size_t>(place.microbatch) + i) % 3 == 0;
    if (missing && !options_.pass_zeros) continue;
    outputs.push_back(output);
    gradients.push_back(missing ? at::zeros_like(output, at::MemoryFormat::Preserve)
                                : model_.output_gradient(place, output, static_cast<int>(i)));
  }
  return {std::move(outputs), std::move(gradients)};
}

void Driver::accumulate(int flat_layer, const Tensors& gradients, std::size_t inputs) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = inputs; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    at::Tensor& sum = sums_[{flat_layer, static_cast<int>(i - inputs)}];
    // The first one is kept, not copied: a gradient that does not own its memory shows at the end
    // of the step.
    if (sum.defined()) {
      sum = at::add(sum, gradients[i]);
    } else {
      sum = gradients[i];
    }
  }
}

void Driver::end_step(int step) {
  observe_again(until_next_backward_, "at the end of the step");
  observe_again(until_end_of_step_, "at the end of the step");
  callables_.end_step();
  tell(&ReplayWatcher::end_step);
  for (const auto& [place, sum] : sums_) {
    observer_.observe({step, 0, 0, place.first},
                      fmt::format("sum of the gradients of parameter {}", place.second), sum);
  }
  for (int layer = 0; layer < model_.spec().plan.layers(); ++layer) {
    const Tensors buffers = buffers_of(model_.module(layer));
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      observer_.observe({step, 0, 0, layer}, fmt::format("buffer {}", i), buffers[i]);
    }
  }
  model_.update(sums_);
  sums_.clear();
  observer_.flush();
}

}  // namespace slotgraph::fuzz

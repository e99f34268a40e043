#include "tools/bench/work.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "core/device/device.h"
#include "core/models/block.h"
#include "core/models/blocks.h"
#include "core/models/values.h"
#include "core/plan/planner.h"

namespace slotgraph::bench {
namespace {

Forward transformer_mlp(Block& block) {
  const std::int64_t h = block.hidden();
  const at::Tensor scale = block.vector("norm_scale", h), shift = block.vector("norm_shift", h);
  const at::Tensor up = block.weight("up", 4 * h, h), up_bias = block.vector("up_bias", 4 * h);
  const at::Tensor down = block.weight("down", h, 4 * h), down_bias = block.vector("down_bias", h);
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    const at::Tensor normed = at::layer_norm(in[0], {h}, scale, shift);
    return {in[0] + at::linear(at::gelu(at::linear(normed, up, up_bias)), down, down_bias)};
  };
}

const bool registered = register_block(kind("transformer_mlp", transformer_mlp));

Plan plan_of(const Work& work) {
  PlanRequest request;
  request.name = "bench";
  request.shape.pipeline_size = work.ring;
  request.layers_per_chunk = {work.layers};
  request.cp_sizes = work.cp_sizes;
  request.counts = {work.ring};
  return make_plan(request);
}

}  // namespace

double milliseconds_since(Clock::time_point from) {
  return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
}

std::string Work::name() const {
  const char* const type = dtype == at::kBFloat16 ? "bf16" : "fp32";
  return fmt::format("{}{} {} {} K={}{}", block == "transformer_mlp" ? "" : block + " ", hidden,
                     type, tokens, variants(), equal_tokens ? " equal" : "");
}

Station::Station(const Work& work, Mode mode, Gradients gradients)
    : work_(work), plan_(plan_of(work)) {
  for (int l = 0; l < work.layers; ++l)
    layers_.push_back(find_block(work.block).make({work.hidden, work.dtype}, 1 + l));
  for (const int cp : work.cp_sizes) {
    modules_.insert(modules_.end(), layers_.begin(), layers_.end());
    const int tokens = work.equal_tokens ? work.tokens : std::max(work.tokens / cp, 1);
    inputs_.push_back(
        integer_values({tokens, work.hidden}, work.dtype, 3).to(at::kCUDA).requires_grad_(true));
    samples_.insert(samples_.end(), static_cast<std::size_t>(work.frames()),
                    Inputs{{inputs_.back()}, {}});
  }
  options_.mode = mode;
  if (gradients == Gradients::kLent)
    options_.borrow_parameter_gradients = [](int, const Tensors&) {};
}

void Station::capture() {
  device::synchronise();
  const auto begin = Clock::now();
  auto warmed = begin;
  Options options = options_;
  options.after_warm_up = [&](int) {
    device::synchronise();
    warmed = Clock::now();
  };
  set_ = graph_callables(modules_, samples_, plan_.base_order, plan_, options);
  device::synchronise();
  capture_ = milliseconds_since(warmed);
  warm_up_ = milliseconds_since(begin) - capture_;
}

void Station::step(int variant, Tensors* found) {
  std::vector<std::pair<at::Tensor, at::Tensor>> flights(static_cast<std::size_t>(work_.frames()));
  at::Tensor incoming;
  for (const OrderEvent& event : events(plan_.base_order)) {
    for (int i = 0; i < work_.layers; ++i) {
      const int layer = event.forward ? i : work_.layers - 1 - i;
      const auto index = static_cast<std::size_t>(event.microbatch * work_.layers + layer);
      auto& [input, output] = flights[index];
      if (event.forward) {
        input =
            (layer == 0 ? inputs_[static_cast<std::size_t>(variant)] : flights[index - 1].second)
                .detach()
                .requires_grad_(true);
        output =
            set_->at(plan_.branch(variant, 0, event.microbatch, layer)).forward({{input}, {}})[0];
        continue;
      }
      if (layer == work_.layers - 1) incoming = inputs_[static_cast<std::size_t>(variant)].detach();
      Tensors wanted{input};
      const Tensors parameters = trainable_parameters(layers_[static_cast<std::size_t>(layer)]);
      wanted.insert(wanted.end(), parameters.begin(), parameters.end());
      const Tensors gradients =
          torch::autograd::grad({output}, wanted, {incoming}, std::nullopt, false, true);
      incoming = gradients[0];
      output = at::Tensor();
      if (found) found->insert(found->end(), gradients.begin() + 1, gradients.end());
    }
  }
  set_->end_step();
}

}  // namespace slotgraph::bench

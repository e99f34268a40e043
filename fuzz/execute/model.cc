#include "fuzz/execute/model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <numeric>

#include "core/device/device.h"
#include "core/models/values.h"

namespace slotgraph::fuzz {
namespace {

at::ScalarType scalar_type(const std::string& dtype) {
  return dtype == "fp64" ? at::kDouble : dtype == "bf16" ? at::kBFloat16 : at::kFloat;
}

// Purposes of generated values: each has its own stream.
enum Purpose : std::uint64_t { kParameters = 1, kFirstInput, kExtraInput, kGradient };

std::uint64_t number(int value) { return static_cast<std::uint64_t>(value); }

}  // namespace

Model::Model(const Case& value, bool remember) : case_(value), remember_(remember) {
  const BlockShape shape{value.hidden, scalar_type(value.dtype)};
  for (std::size_t i = 0; i < value.layers.size(); ++i) {
    kinds_.push_back(&find_block(value.layers[i].block));
    modules_.push_back(kinds_.back()->make(shape, mix({value.seed, kParameters, i})));
    const std::string& trainable = value.layers[i].trainable;
    const Tensors parameters = parameters_of(modules_.back());
    for (std::size_t k = 0; k < parameters.size(); ++k)
      parameters[k].requires_grad_(trainable == "all" || (trainable == "alternate" && k % 2 == 0));
    Tensors state = parameters_of(modules_.back());
    const Tensors buffers = buffers_of(modules_.back());
    state.insert(state.end(), buffers.begin(), buffers.end());
    initial_.emplace_back();
    for (const at::Tensor& tensor : state) initial_.back().push_back(tensor.detach().clone());
  }
}

int Model::flat_layer(int chunk, int layer) const {
  const auto& layers = case_.plan.layers_per_chunk;
  return std::accumulate(layers.begin(), layers.begin() + chunk, 0) + layer;
}

std::vector<GraphModule> Model::modules_of_variants() const {
  std::vector<GraphModule> result;
  for (int variant = 0; variant < case_.plan.variants(); ++variant) {
    result.insert(result.end(), modules_.begin(), modules_.end());
  }
  return result;
}

std::vector<Inputs> Model::samples() {
  const Plan& plan = case_.plan;
  std::vector<Inputs> result(plan.slots.size());
  const at::NoGradGuard no_grad;
  for (int variant = 0; variant < plan.variants(); ++variant) {
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      at::Tensor first = first_input({0, 0, chunk, 0}, variant);
      for (int layer = 0; layer < plan.layers_per_chunk[chunk]; ++layer) {
        const Inputs sample = inputs({0, 0, chunk, layer}, variant, first);
        for (int slot = 0; slot < plan.ring_length; ++slot)
          result[plan.branch(variant, chunk, slot, layer)] = sample;
        first = modules_[flat_layer(chunk, layer)].forward(sample.positional, sample.named)[0];
      }
    }
  }
  shared_.clear();
  return result;
}

bool Model::input_gradient(int chunk, int layer) const {
  return layer == 0 ? case_.layers[flat_layer(chunk, 0)].input_gradient
                    : differentiable(chunk, layer - 1);
}

bool Model::differentiable(int chunk, int layer) const {
  const int flat = flat_layer(chunk, layer);
  if (input_gradient(chunk, layer) || !trainable_parameters(modules_[flat]).empty()) return true;
  for (const ExtraInput& extra : kinds_[flat]->extra_inputs) {
    if (extra.requires_grad && case_.layers[flat].extra_gradients) return true;
  }
  return false;
}

at::Tensor Model::values(at::IntArrayRef sizes, at::ScalarType dtype, std::uint64_t key,
                         double scale) const {
  const auto make = [&] { return integer_values(sizes, dtype, key, scale).to(at::kCUDA); };
  if (!remember_) return make();
  std::uint64_t whole = key;
  for (const std::int64_t size : sizes) whole = mix({whole, static_cast<std::uint64_t>(size)});
  at::Tensor& kept = remembered_[whole];
  if (!kept.defined()) kept = make();
  return kept.clone();
}

Inputs Model::inputs(const Coordinate& place, int variant, const at::Tensor& first) {
  const int flat = flat_layer(place.chunk, place.layer);
  Inputs result;
  result.positional.push_back(
      first.detach().requires_grad_(input_gradient(place.chunk, place.layer)));
  for (std::size_t i = 0; i < kinds_[flat]->extra_inputs.size(); ++i) {
    const ExtraInput& extra = kinds_[flat]->extra_inputs[i];
    const std::vector<std::int64_t> sizes = extra.per_token
                                                ? std::vector{case_.tokens[variant], case_.hidden}
                                                : std::vector{case_.hidden};
    const std::uint64_t owner = extra.shared ? 0 : 1 + number(flat) * 64 + i;
    const auto make = [&] {
      return values(
          sizes, scalar_type(case_.dtype),
          mix({case_.seed, kExtraInput, number(place.step), number(place.microbatch), owner}), 1.0);
    };
    at::Tensor tensor;
    if (case_.layers[flat].aliased_inputs && extra.per_token) {
      tensor = first.detach();
    } else if (extra.shared) {
      at::Tensor& kept = shared_[{place.step, place.microbatch, variant, extra.name}];
      if (!kept.defined()) kept = make();
      tensor = kept.detach();
    } else {
      tensor = make();
    }
    tensor.requires_grad_(extra.requires_grad && case_.layers[flat].extra_gradients);
    if (extra.name.empty()) {
      result.positional.push_back(tensor);
    } else {
      result.named.emplace_back(extra.name, tensor);
    }
  }
  return result;
}

at::Tensor Model::first_input(const Coordinate& place, int variant) const {
  return values({case_.tokens[variant], case_.hidden}, scalar_type(case_.dtype),
                mix({case_.seed, kFirstInput, number(place.step), number(place.microbatch),
                     number(place.chunk)}),
                1.0);
}

at::Tensor Model::output_gradient(const Coordinate& place, const at::Tensor& output,
                                  int index) const {
  const at::Tensor gradient = values(
      output.sizes(), output.scalar_type(),
      mix({case_.seed, kGradient, number(place.step), number(place.microbatch), number(place.chunk),
           index == 0 ? 0 : 1 + number(place.layer) * 64 + number(index)}),
      0.5);
  return to_layout(gradient, output.sizes(), output.strides());
}

bool Model::hides_saves() const {
  return std::any_of(kinds_.begin(), kinds_.end(),
                     [](const BlockKind* kind) { return kind->hides_saves; });
}

bool Model::aliases_leading_input() const {
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    const auto& extra = kinds_[i]->extra_inputs;
    const bool views = std::any_of(extra.begin(), extra.end(),
                                   [](const ExtraInput& input) { return input.per_token; });
    if (case_.layers[i].aliased_inputs && views) return true;
  }
  return false;
}

std::size_t Model::remembered_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [key, tensor] : remembered_) bytes += tensor.storage().nbytes();
  return bytes;
}

void Model::reset() {
  const at::NoGradGuard no_grad;
  shared_.clear();
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    Tensors state = parameters_of(modules_[i]);
    const Tensors buffers = buffers_of(modules_[i]);
    state.insert(state.end(), buffers.begin(), buffers.end());
    for (std::size_t k = 0; k < state.size(); ++k) state[k].copy_(initial_[i][k]);
  }
  at::Generator generator = device::generator();
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(case_.seed);
}

void Model::update(const std::map<std::pair<int, int>, at::Tensor>& sums) {
  const at::NoGradGuard no_grad;
  for (const auto& [place, sum] : sums)
    trainable_parameters(modules_[place.first])[place.second].add_(sum, -0.125);
  shared_.clear();
}

at::Tensor to_layout(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides) {
  if (tensor.strides() == strides || !tensor.defined()) return tensor;
  at::Tensor result = at::empty_strided(sizes, strides, tensor.options());
  if (!result.is_non_overlapping_and_dense()) return tensor;
  result.copy_(tensor.detach());
  return result;
}

}  // namespace slotgraph::fuzz

#include "core/models/zoo.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "core/models/block.h"

namespace slotgraph {
namespace {

// x + W2 gelu(W1 norm(x))
Forward mlp(Block& block) {
  const std::int64_t h = block.hidden();
  const at::Tensor scale = block.vector("norm_scale", h), shift = block.vector("norm_shift", h);
  const at::Tensor up = block.weight("up", 2 * h, h), up_bias = block.vector("up_bias", 2 * h);
  const at::Tensor down = block.weight("down", h, 2 * h), down_bias = block.vector("down_bias", h);
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    const at::Tensor normed = at::layer_norm(in[0], {h}, scale, shift);
    return {in[0] + at::linear(at::gelu(at::linear(normed, up, up_bias)), down, down_bias)};
  };
}

// One head with the softmax written out.
Forward attention(Block& block) {
  const std::int64_t h = block.hidden();
  const at::Tensor query = block.weight("query", h, h), key = block.weight("key", h, h);
  const at::Tensor value = block.weight("value", h, h), out = block.weight("out", h, h);
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    const at::Tensor& x = in[0];
    const at::Tensor scores = at::matmul(at::linear(x, query), at::linear(x, key).transpose(0, 1));
    const at::Tensor weights = at::softmax(scores / std::sqrt(static_cast<double>(h)), -1);
    return {x + at::linear(at::matmul(weights, at::linear(x, value)), out)};
  };
}

Forward dropout(Block& block) {
  const at::Tensor weight = block.weight("weight", block.hidden(), block.hidden());
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    return {in[0] + at::dropout(at::linear(in[0], weight), 0.25, true)};
  };
}

// The output is a transposed view of what the block computes.
Forward view(Block& block) {
  const at::Tensor weight = block.weight("weight", block.hidden(), block.hidden());
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    return {at::tanh(at::matmul(weight, in[0].transpose(0, 1))).transpose(0, 1)};
  };
}

// A gate, and a second input that all frames of a microbatch share.
Forward two_inputs(Block& block) {
  const at::Tensor weight = block.weight("weight", block.hidden(), block.hidden());
  return [=](at::TensorList in, const NamedTensors& named) -> Tensors {
    return {in[0] * at::sigmoid(at::linear(in[0], weight)) + named.at(0).second};
  };
}

// Forward updates a running mean in place and uses it.
Forward running_mean(Block& block) {
  const at::Tensor weight = block.weight("weight", block.hidden(), block.hidden());
  const at::Tensor mean = block.buffer("running_mean", block.hidden());
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    at::Tensor running = mean;
    running.mul_(0.75).add_(in[0].detach().mean(0), 0.25);
    return {at::linear(in[0] - mean, weight)};
  };
}

// The gradients of both inputs are the incoming gradient itself.
Forward add_inputs(Block&) {
  return [](at::TensorList in, const NamedTensors&) -> Tensors { return {in[0] + in[1]}; };
}

// Keeps an activation in saved_data, which no saved-tensor hook sees.
struct SquareFunction : torch::autograd::Function<SquareFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& scale) {
    const at::Tensor activation = at::tanh(x);
    context->saved_data["activation"] = activation;
    context->save_for_backward({scale});
    return activation * activation * scale;
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& incoming) {
    const at::Tensor activation = context->saved_data["activation"].toTensor();
    const at::Tensor scale = context->get_saved_variables()[0];
    const at::Tensor slope = 1 - activation * activation;
    return {incoming[0] * scale * 2 * activation * slope,
            (incoming[0] * activation * activation).sum(0)};
  }
};

Forward saved_data(Block& block) {
  const at::Tensor scale = block.vector("scale", block.hidden());
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    return {in[0] + SquareFunction::apply(in[0], scale)};
  };
}

}  // namespace

std::vector<BlockKind> plain_blocks() {
  return {
      kind("mlp", mlp),
      kind("attention", attention),
      kind("dropout", dropout),
      kind("view", view),
      kind("two_inputs", two_inputs, {{.name = "shared", .requires_grad = false, .shared = true}}),
      kind("running_mean", running_mean),
      kind("add_inputs", add_inputs, {{.name = ""}}),
      kind("saved_data", saved_data, {}, /*hides_saves=*/true)};
}

}  // namespace slotgraph

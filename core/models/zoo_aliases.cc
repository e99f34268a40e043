// Blocks for the rules about aliases, saved tensors and module state: one for each kind of tensor
// that a runtime must keep apart.
#include <ATen/Functions.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/models/block.h"
#include "core/models/zoo.h"

namespace slotgraph {
namespace {

// Three outputs of one storage: whole, without its first row, transposed.
Forward output_views(Block& block) {
  const at::Tensor weight = block.weight("weight", block.hidden(), block.hidden());
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    const at::Tensor y = at::tanh(at::linear(in[0], weight));
    return {y, y.narrow(0, 1, y.size(0) - 1), y.transpose(0, 1)};
  };
}

// Views of the parameter, of the buffer and of the input as outputs.
Forward foreign_views(Block& block) {
  const at::Tensor weight = block.weight("weight", block.hidden(), block.hidden());
  const at::Tensor shift = block.buffer("shift", block.hidden());
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    return {at::linear(in[0], weight) + shift, weight.view({-1}), shift.narrow(0, 1, 2),
            in[0].narrow(1, 0, 2)};
  };
}

// Outputs without gradient, of other dtypes, without elements, and none.
Forward odd_outputs(Block& block) {
  const at::Tensor weight = block.weight("weight", block.hidden(), block.hidden());
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    const at::Tensor y = at::sigmoid(at::linear(in[0], weight));
    return {y,
            y.detach().gt(0.5),
            y.detach().gt(0.25).to(at::kLong),
            y.narrow(0, 0, 0),
            at::Tensor(),
            y * 2};
  };
}

// Saves indices and a mask: integers and booleans.
Forward integer_saves(Block& block) {
  const at::Tensor weight = block.weight("weight", block.hidden(), block.hidden());
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    const at::Tensor h = at::linear(in[0], weight);
    const at::Tensor largest = std::get<0>(at::max(h, 1, /*keepdim=*/true));
    return {at::where(h.gt(0), h, h * 0.125) + largest};
  };
}

// Saves an expanded activation, which has fewer bytes than elements.
Forward expanded_save(Block& block) {
  const at::Tensor weight = block.weight("weight", block.hidden(), block.hidden());
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    const at::Tensor h = at::tanh(at::linear(in[0], weight));
    return {h * h.mean(0, /*keepdim=*/true).expand_as(h)};
  };
}

// Saves two overlapping views of one buffer, and an empty tensor.
struct OverlapFunction : torch::autograd::Function<OverlapFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    const at::Tensor buffer = at::cat({x, x * 2, x * 3});
    const std::int64_t rows = x.size(0);
    context->save_for_backward(
        {buffer.narrow(0, 0, 2 * rows), buffer.narrow(0, rows, 2 * rows), buffer.narrow(0, 0, 0)});
    return x * x;
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& incoming) {
    const Tensors saved = context->get_saved_variables();
    const std::int64_t rows = incoming[0].size(0);
    return {incoming[0] *
            (saved[0].narrow(0, rows, rows) * 2 - saved[1].narrow(0, 0, rows) + saved[2].sum())};
  }
};

Forward overlapping_saves(Block&) {
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    return {OverlapFunction::apply(in[0])};
  };
}

// The backward adds the weight's gradient to a buffer, and returns none for it. State that other
// frames write may not be a saved tensor: autograd would find it modified.
struct MainGradFunction : torch::autograd::Function<MainGradFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight, const at::Tensor& main_grad) {
    context->save_for_backward({x, weight});
    context->saved_data["main_grad"] = main_grad;
    return at::linear(x, weight);
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& incoming) {
    const Tensors saved = context->get_saved_variables();
    at::Tensor main_grad = context->saved_data["main_grad"].toTensor();
    main_grad.add_(at::matmul(incoming[0].transpose(0, 1), saved[0]));
    return {at::matmul(incoming[0], saved[1]), at::Tensor(), at::Tensor()};
  }
};

Forward main_grad(Block& block) {
  const std::int64_t h = block.hidden();
  const at::Tensor weight = block.weight("weight", h, h);
  const at::Tensor sum = block.register_buffer("main_grad", at::zeros_like(weight).detach());
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    return {in[0] + MainGradFunction::apply(in[0], weight, sum)};
  };
}

// Scales by a history of largest magnitudes, as FP8 training does: forward and backward keep one.
struct ScaleFunction : torch::autograd::Function<ScaleFunction> {
  static at::Tensor quantised(const at::Tensor& x, at::Tensor history) {
    const at::Tensor scale = 8 / (history.max() + 0.125);
    const at::Tensor result = at::round(x * scale) / scale;
    history.copy_(at::roll(history, 1));
    history.narrow(0, 0, 1).copy_(x.detach().abs().max().view({1}));
    return result;
  }
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& amax, const at::Tensor& gradient_amax) {
    context->saved_data["amax"] = gradient_amax;
    return quantised(x, amax);
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& incoming) {
    return {quantised(incoming[0], context->saved_data["amax"].toTensor()), at::Tensor(),
            at::Tensor()};
  }
};

Forward amax_history(Block& block) {
  const at::Tensor weight = block.weight("weight", block.hidden(), block.hidden());
  const at::Tensor amax = block.buffer("amax", 4), gradient_amax = block.buffer("gradient_amax", 4);
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    return {at::linear(ScaleFunction::apply(in[0], amax, gradient_amax), weight)};
  };
}

// A part of the work on another stream.
Forward side_stream(Block& block) {
  const at::Tensor weight = block.weight("weight", block.hidden(), block.hidden());
  static const c10::cuda::CUDAStream side = c10::cuda::getStreamFromPool();
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    const c10::cuda::CUDAStream here = c10::cuda::getCurrentCUDAStream();
    // A leaf belongs to the stream that uses it first, and its gradients must come from there.
    const at::Tensor doubled = in[0] * 2;
    c10::Event fork(c10::DeviceType::CUDA), join(c10::DeviceType::CUDA);
    fork.record(here.unwrap());
    fork.block(side.unwrap());
    at::Tensor gate;
    {
      const c10::cuda::CUDAStreamGuard there(side);
      gate = at::sigmoid(doubled);
      join.record(side.unwrap());
    }
    const at::Tensor h = at::linear(in[0], weight);
    join.block(here.unwrap());
    gate.record_stream(here.unwrap());
    return {h * gate};
  };
}

// One of two parameters takes no part.
Forward unused_parameter(Block& block) {
  const at::Tensor unused = block.vector("unused", block.hidden());
  const at::Tensor weight = block.weight("weight", block.hidden(), block.hidden());
  return [=](at::TensorList in, const NamedTensors&) -> Tensors {
    return {at::linear(in[0], weight)};
  };
}

}  // namespace

std::vector<BlockKind> alias_blocks() {
  return {kind("output_views", output_views),   kind("foreign_views", foreign_views),
          kind("odd_outputs", odd_outputs),     kind("integer_saves", integer_saves),
          kind("expanded_save", expanded_save), kind("overlapping_saves", overlapping_saves),
          kind("main_grad", main_grad),         kind("amax_history", amax_history),
          kind("side_stream", side_stream),     kind("unused_parameter", unused_parameter)};
}

}  // namespace slotgraph

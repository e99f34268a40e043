#include "core/device/host/cases.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/device/host/test_support.h"

namespace slotgraph::device {
namespace {

at::Tensor made(at::IntArrayRef sizes, std::uint64_t seed, at::ScalarType type, at::Device device) {
  const at::Tensor real = values(sizes, seed);
  if (type == at::kBool) return (real > 0).to(device);
  if (type == at::kLong) return (real * 20).to(at::kLong).to(device);
  return real.to(type).to(device);
}

at::Tensor integers(at::IntArrayRef sizes, std::uint64_t seed, std::int64_t end,
                    at::Device device) {
  return ((values(sizes, seed) + 1) * 0.5 * static_cast<double>(end))
      .floor()
      .clamp(0, static_cast<double>(end - 1))
      .to(at::kLong)
      .to(device);
}

}  // namespace

Inputs::Inputs(at::ScalarType type, at::Device device)
    : x(made({6, 8}, 1, type, device)),
      y(made({6, 8}, 2, type, device)),
      z(made({6, 8}, 3, type, device)),
      row(made({8}, 5, type, device)),
      column(made({6, 1}, 6, type, device)),
      batch(made({3, 4, 8}, 8, type, device)),
      factors(made({3, 8, 5}, 9, type, device)),
      image(made({2, 4, 8, 8}, 10, type, device)),
      scalar(made({}, 12, type, device)),
      rows(at::tensor({3, 0, 5, 2}, at::kLong).to(device)),
      classes(integers({6}, 13, 8, device)),
      mask((values({6, 8}, 14) > 0).to(device)) {
  const at::Tensor floats = values({6, 8}, 4);
  positive = type == at::kLong ? (floats.abs() * 20 + 1).to(at::kLong).to(device)
                               : (floats.abs() + 0.5).to(type).to(device);
  unit = ((floats + 1) * 0.49 + 0.01).to(type).to(device);
  transposed = made({8, 6}, 11, type, device).t();
  square = made({8, 8}, 7, at::kFloat, at::kCPU).add(at::eye(8) * 5).to(type).to(device);
  places = values({6, 8}, 15).argsort(true, -1, false).to(device);
}

Tensors with_gradients(const Tensors& inputs,
                       const std::function<at::Tensor(const Tensors&)>& function) {
  Tensors leaves;
  for (const at::Tensor& input : inputs)
    leaves.push_back(input.detach().clone().requires_grad_(true));
  const at::Tensor value = function(leaves);
  const at::Tensor weight = values(value.sizes(), 99).to(value.options());
  Tensors result = torch::autograd::grad({value}, leaves, {weight});
  result.push_back(value.detach());
  return result;
}

}  // namespace slotgraph::device

#include "core/graph/run/backward.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/strides.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include "core/graph/calling_thread.h"

namespace slotgraph {

TensorShape gradient_shape(const at::Tensor& output) {
  const bool dense = output.is_non_overlapping_and_dense();
  const auto contiguous = c10::contiguous_strides(output.sizes());
  return {output.sizes().vec(),
          dense ? output.strides().vec()
                : std::vector<std::int64_t>(contiguous.begin(), contiguous.end()),
          output.scalar_type()};
}

std::size_t storage_bytes(const TensorShape& shape) {
  return at::detail::computeStorageNbytes(shape.sizes, shape.strides,
                                          c10::elementSize(shape.dtype));
}

namespace {

// A backward that throws leaves its queued nodes, and the tensors that they hold, in the thread's
// queue until a later backward comes to them. Nodes come by descending sequence number: this one is
// last.
struct LastNode final : torch::autograd::Node {
  explicit LastNode(torch::autograd::edge_list&& next) : Node(/*sequence_nr=*/0, std::move(next)) {}
  torch::autograd::variable_list apply(torch::autograd::variable_list&& incoming) override {
    return std::move(incoming);
  }
};

void empty_engine_queue() {
  const at::Tensor leaf = at::zeros({1}).requires_grad_(true);
  at::Tensor output = at::zeros({1});
  torch::autograd::set_history(output, std::make_shared<LastNode>(torch::autograd::edge_list{
                                           torch::autograd::impl::gradient_edge(leaf)}));
  (void)torch::autograd::grad({output}, {leaf}, {at::zeros({1})});
}

}  // namespace

Tensors run_backward(const Tensors& outputs, const Tensors& inputs, const Tensors& parameters,
                     const Tensors& incoming) {
  Tensors differentiable;
  for (const at::Tensor& output : outputs) {
    if (output.defined() && output.requires_grad()) differentiable.push_back(output);
  }
  Tensors wanted;
  for (const at::Tensor& input : inputs) {
    if (input.requires_grad()) wanted.push_back(input);
  }
  wanted.insert(wanted.end(), parameters.begin(), parameters.end());
  const CallingThreadGuard guard;
  Tensors found;
  try {
    found = torch::autograd::grad(differentiable, wanted, incoming, std::nullopt, false, true);
  } catch (...) {
    try {
      empty_engine_queue();
    } catch (const std::exception& error) {
      // The exception on its way is the cause; this one can only be told.
      fmt::print(stderr, "slotgraph: the engine keeps tensors of a failed backward: {}\n",
                 error.what());
    }
    throw;
  }
  Tensors result;
  std::size_t next = 0;
  for (const at::Tensor& input : inputs)
    result.push_back(input.requires_grad() ? found[next++] : at::Tensor());
  for (; next < found.size(); ++next) result.push_back(found[next]);
  return result;
}

Tensors fresh_leaves(const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& tensor : tensors)
    result.push_back(tensor.detach().requires_grad_(tensor.requires_grad()));
  return result;
}

}  // namespace slotgraph

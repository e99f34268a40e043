// Running a branch's backward, and what its gradients look like.
#ifndef CORE_GRAPH_RUN_BACKWARD_H_
#define CORE_GRAPH_RUN_BACKWARD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/graph/graph_module.h"

namespace slotgraph {

struct TensorShape {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  at::ScalarType dtype = at::kFloat;
  auto operator<=>(const TensorShape&) const = default;
};

// A gradient's layout: like the output if that is dense, else contiguous.
TensorShape gradient_shape(const at::Tensor& output);
// Bytes from the first to the last element that sizes and strides reach.
std::size_t storage_bytes(const TensorShape& shape);

// Gradients of the differentiable outputs with respect to the inputs that require grad and the
// parameters; one entry for each input, then each parameter, undefined where there is none. Runs on
// the calling thread.
Tensors run_backward(const Tensors& outputs, const Tensors& inputs, const Tensors& parameters,
                     const Tensors& incoming);

// Detached aliases of the tensors that require grad as the originals do.
Tensors fresh_leaves(const Tensors& tensors);

}  // namespace slotgraph

#endif  // CORE_GRAPH_RUN_BACKWARD_H_

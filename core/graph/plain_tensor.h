// Which tensors the runtime can give a static place.
#ifndef CORE_GRAPH_PLAIN_TENSOR_H_
#define CORE_GRAPH_PLAIN_TENSOR_H_

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

namespace slotgraph {

// Why the runtime cannot give this tensor a place: it is undefined, or one of the kinds that stand
// for subclasses in libtorch (sparse, MKLDNN, nested, quantised, functional, batched, a lazy
// conjugate or negative). Nothing for a plain strided tensor of any device; libtorch has no
// negative strides.
std::optional<std::string> not_plain(const at::Tensor& tensor);
// The same for a static place on the current device: also another device, and elements that share
// memory.
std::optional<std::string> no_static_place(const at::Tensor& tensor);

// `Float[3, 8] on cuda:0`, for errors.
std::string describe(const at::Tensor& tensor);

}  // namespace slotgraph

#endif  // CORE_GRAPH_PLAIN_TENSOR_H_

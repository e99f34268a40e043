#include <ATen/ops/clone.h>

#include <algorithm>

#include "core/graph/replay/branch.h"

namespace slotgraph {
namespace {

struct Range {
  const char* begin;
  const char* end;
};

// The bytes that the tensor can touch.
Range range_of(const at::Tensor& tensor) {
  const auto* const begin = static_cast<const char*>(tensor.const_data_ptr());
  std::size_t last = 0;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) == 0) return {begin, begin};
    last += static_cast<std::size_t>((tensor.size(d) - 1) * tensor.stride(d));
  }
  return {begin, begin + (last + 1) * tensor.itemsize()};
}

bool overlap(const at::Tensor& a, const at::Tensor& b) {
  const Range x = range_of(a);
  const Range y = range_of(b);
  return x.begin < y.end && y.begin < x.end;
}

bool in_place(const at::Tensor& source, const at::Tensor& target) {
  return source.const_data_ptr() == target.const_data_ptr() &&
         source.strides() == target.strides() && source.scalar_type() == target.scalar_type();
}

}  // namespace

void parallel_move(const Tensors& sources, const Tensors& targets) {
  Tensors safe = sources;
  for (std::size_t i = 0; i < safe.size(); ++i) {
    if (!safe[i].defined() || in_place(sources[i], targets[i])) continue;
    const bool clobbered = std::any_of(
        targets.begin(), targets.end(),
        [&](const at::Tensor& target) { return target.defined() && overlap(sources[i], target); });
    if (clobbered) safe[i] = sources[i].clone();
  }
  for (std::size_t i = 0; i < safe.size(); ++i) {
    if (safe[i].defined() && !in_place(safe[i], targets[i])) at::Tensor(targets[i]).copy_(safe[i]);
  }
}

}  // namespace slotgraph

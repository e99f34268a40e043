#include "core/graph/replay/parallel_move.h"

#include <ATen/ops/clone.h>

#include <algorithm>

#include "core/memory/region.h"

namespace slotgraph {
namespace {

bool in_place(const at::Tensor& source, const at::Tensor& target) {
  return source.const_data_ptr() == target.const_data_ptr() &&
         source.strides() == target.strides() && source.scalar_type() == target.scalar_type();
}

}  // namespace

void parallel_move(const Tensors& sources, const Tensors& targets) {
  Tensors safe = sources;
  for (std::size_t i = 0; i < safe.size(); ++i) {
    if (!safe[i].defined() || in_place(sources[i], targets[i])) continue;
    const Region source = region_of(sources[i]);
    const bool clobbered =
        std::any_of(targets.begin(), targets.end(), [&](const at::Tensor& target) {
          return target.defined() && overlap(source, region_of(target));
        });
    if (clobbered) safe[i] = sources[i].clone();
  }
  for (std::size_t i = 0; i < safe.size(); ++i) {
    if (safe[i].defined() && !in_place(safe[i], targets[i])) at::Tensor(targets[i]).copy_(safe[i]);
  }
}

}  // namespace slotgraph

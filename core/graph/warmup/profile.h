// What warm-up learns about a branch: how it allocates, and what each surviving allocation is for.
#ifndef CORE_GRAPH_WARMUP_PROFILE_H_
#define CORE_GRAPH_WARMUP_PROFILE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "core/graph/graph_module.h"
#include "core/graph/warmup/observation.h"
#include "core/layout/frame_layout.h"
#include "core/memory/placing_allocator.h"

namespace slotgraph {

// One allocation of a forward or backward, by order of birth.
struct ProfiledAllocation {
  std::size_t bytes = 0;
  std::optional<Role> role;  // of a survivor; a transient has none
  bool operator==(const ProfiledAllocation&) const = default;
};

struct TensorShape {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  at::ScalarType dtype = at::kFloat;
  auto operator<=>(const TensorShape&) const = default;
};

struct BranchProfile {
  Observation observation;
  // The allocations, if they were watched.
  std::vector<ProfiledAllocation> forward;
  std::vector<ProfiledAllocation> backward;
  // Incoming gradients: one for each differentiable output.
  std::vector<TensorShape> incoming;
  // Bytes that the leading input's gradient needs when it is no allocation of this backward and
  // must be copied.
  std::optional<std::size_t> copied_gradient_bytes;
};

// Roles of a forward's allocations: outputs by position, the other survivors by birth.
std::vector<ProfiledAllocation> classify_forward(const std::vector<Allocation>& allocations,
                                                 const Tensors& outputs);
// Roles of a backward's allocations: that of the leading input's gradient is kGradient 0, the rest
// are transient. `leading` may be undefined.
std::vector<ProfiledAllocation> classify_backward(const std::vector<Allocation>& allocations,
                                                  const at::Tensor& leading);

// An allocation that survives in either of two runs of the same sequence survives. Different
// sequences: the newer one.
std::vector<ProfiledAllocation> merge(const std::vector<ProfiledAllocation>& older,
                                      const std::vector<ProfiledAllocation>& newer);

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

#endif  // CORE_GRAPH_WARMUP_PROFILE_H_

// What warm-up learns about a branch: how it allocates, and what each surviving allocation is for.
#ifndef CORE_GRAPH_WARMUP_PROFILE_H_
#define CORE_GRAPH_WARMUP_PROFILE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "core/graph/graph_module.h"
#include "core/graph/run/backward.h"
#include "core/graph/run/run_tensors.h"
#include "core/layout/frame_layout.h"
#include "core/memory/placing_allocator.h"

namespace slotgraph {

// One allocation of a forward or backward, by order of birth.
struct ProfiledAllocation {
  std::size_t bytes = 0;
  std::optional<Role> role;  // of a survivor; a transient has none
  bool operator==(const ProfiledAllocation&) const = default;
};

// How the survivors of a frame come to their place. Hooks change how long saved tensors live, so
// one run cannot be watched for both.
enum class FrameKind {
  kFree,    // there is no place for them: nothing is watched, runs only fill caches
  kPlaced,  // they are born there: allocations are watched
  kCopied,  // they are copied there: saved tensors are watched
};

struct BranchProfile {
  FrameKind kind = FrameKind::kFree;
  RunTensors tensors;
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

}  // namespace slotgraph

#endif  // CORE_GRAPH_WARMUP_PROFILE_H_

// Which buffer the leading input of each branch is copied into.
#ifndef CORE_LAYOUT_STAGING_H_
#define CORE_LAYOUT_STAGING_H_

#include <optional>
#include <vector>

#include "core/layout/tensor_spec.h"

namespace slotgraph {

struct StagedBranch {
  int colour = 0;      // liveness colour
  TensorSpec leading;  // the sample's first input
  // Storages of its other inputs, and of its parameters and buffers; a storage may stand twice.
  std::vector<int> other_inputs;
  std::vector<int> module_state;
};

struct StagingGroup {
  std::vector<int> members;    // branches of one colour whose leading inputs have one layout
  std::optional<int> storage;  // of a sample, which they all use; none: a fresh buffer
  std::int64_t bytes = 0;      // of a fresh buffer: offset in the storage + span
};

struct StagingPlan {
  std::vector<StagingGroup> groups;  // in order of their first members
  std::vector<int> group_of_branch;
};

// Gives every group a storage of its own, a sample's where one can serve: as many as possible. A
// storage can serve a group if, for every member, exactly those other tensors alias it that aliased
// the member's own leading input, and if no branch of another colour has it as another input.
// Throws Error: C21 an input that lies in the module state of any branch, L01 a group that no
// storage can serve and whose aliases a fresh buffer would break.
StagingPlan plan_staging(const std::vector<StagedBranch>& branches);

}  // namespace slotgraph

#endif  // CORE_LAYOUT_STAGING_H_

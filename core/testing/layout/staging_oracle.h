// Which storages may stage the leading inputs of which branches, by brute force.
#ifndef CORE_TESTING_LAYOUT_STAGING_ORACLE_H_
#define CORE_TESTING_LAYOUT_STAGING_ORACLE_H_

#include <optional>
#include <vector>

#include "core/layout/arena_layout.h"

namespace slotgraph::testing {

using Members = std::vector<int>;  // branches, ascending

// Branches of one colour whose leading inputs differ at most in the storage; by first member.
std::vector<Members> staging_groups(const std::vector<BranchTensors>& branches);

// The sample storages that keep every alias of the leading inputs of `members` and invent none,
// and that no branch of another colour has as another input.
std::vector<int> storages_for(const std::vector<BranchTensors>& branches, const Members& members);

// No other input or module state of any member aliases its leading input.
bool may_be_fresh(const std::vector<BranchTensors>& branches, const Members& members);

// The largest number of groups that can have storages, each its own, while all others may be
// fresh; none if there is no such choice. Tries all.
std::optional<int> most_on_storages(const std::vector<BranchTensors>& branches);

}  // namespace slotgraph::testing

#endif  // CORE_TESTING_LAYOUT_STAGING_ORACLE_H_

// When lay_out() must refuse branches.
#ifndef CORE_TESTING_LAYOUT_REFUSALS_H_
#define CORE_TESTING_LAYOUT_REFUSALS_H_

#include <set>
#include <string>
#include <vector>

#include "core/layout/arena_layout.h"

namespace slotgraph::testing {

// The rules of which lay_out() must report one, by its contract; empty: it must succeed. More than
// one where the contract leaves it open which comes first: among branches of one frame, among
// saved tensors, where module state meets none, and where a tensor that shares a storage meets
// none.
std::set<std::string> refusals(const std::vector<BranchTensors>& branches);

}  // namespace slotgraph::testing

#endif  // CORE_TESTING_LAYOUT_REFUSALS_H_

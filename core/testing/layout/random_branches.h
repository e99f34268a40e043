// Seeded branches for tests of arena layouts: frames with branches of different sizes, colours,
// and aliases of every kind.
#ifndef CORE_TESTING_LAYOUT_RANDOM_BRANCHES_H_
#define CORE_TESTING_LAYOUT_RANDOM_BRANCHES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/layout/arena_layout.h"

namespace slotgraph::testing {

struct RandomBranches {
  std::vector<BranchTensors> branches;  // 1 to 6, of 1 to 3 colours
  std::map<std::string, int> choices;   // how often each kind of tensor was drawn
};

// The same for the same seed. Tensors have at most 64 elements, at offsets that are multiples of
// their items. Most seeds keep all contracts; one in 16 breaks an interface on purpose, and some
// aliases cannot be kept by any layout.
RandomBranches random_branches(std::uint64_t seed);

}  // namespace slotgraph::testing

#endif  // CORE_TESTING_LAYOUT_RANDOM_BRANCHES_H_

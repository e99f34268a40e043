// Heavy cliques: lower bounds of what any colouring costs.
#ifndef CORE_PLAN_PACKING_CLIQUE_H_
#define CORE_PLAN_PACKING_CLIQUE_H_

#include <cstdint>
#include <vector>

#include "core/plan/conflicts.h"

namespace slotgraph {

struct Clique {
  std::vector<int> nodes;  // ascending
  std::int64_t weight = 0;
  bool heaviest = false;   // the search ended: there is no heavier one
  std::int64_t steps = 0;  // nodes of the search tree that were visited; more for large graphs
};

// Branch and bound with greedy colourings as bounds (Tomita and Kameda, "An efficient
// branch-and-bound algorithm for finding a maximum clique", 2007, with weights). Starts from
// the clique `known` and ends after `steps` nodes of the tree. Weights are not negative.
Clique heaviest_clique(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
                       const std::vector<int>& known, std::int64_t steps);

}  // namespace slotgraph

#endif  // CORE_PLAN_PACKING_CLIQUE_H_

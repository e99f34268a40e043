// Colourings that cost little, the cost of a colour being its heaviest node: the bytes of arenas.
#ifndef CORE_PLAN_PACKING_WEIGHTED_COLOURING_H_
#define CORE_PLAN_PACKING_WEIGHTED_COLOURING_H_

#include <cstdint>
#include <vector>

#include "core/plan/colouring.h"

namespace slotgraph {

struct WeightedColouring {
  Colouring colours;      // colour 0 is a heaviest one, and so on
  std::int64_t cost = 0;  // sum over the colours of their heaviest node
  bool optimal = false;   // no colouring costs less
  std::int64_t steps = 0;
};

// The sum over the colours of their heaviest node.
std::int64_t cost_of(const Colouring& colouring, const std::vector<std::int64_t>& weights);

// The cheapest of: DSATUR; DSATUR by falling weight; either one improved by merging and
// recolouring; and, as far as `steps` go, branch and bound, which for small graphs proves the
// optimum. It ends as soon as the cost is `lower_bound`. Deterministic; never more expensive than
// DSATUR.
WeightedColouring colour(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
                         std::int64_t lower_bound, std::int64_t steps);

}  // namespace slotgraph

#endif  // CORE_PLAN_PACKING_WEIGHTED_COLOURING_H_

// Colourings that cost little, the cost of a colour being its heaviest node: the bytes of arenas.
#ifndef CORE_PLAN_PACKING_WEIGHTED_COLOURING_H_
#define CORE_PLAN_PACKING_WEIGHTED_COLOURING_H_

#include <cstdint>
#include <vector>

#include "core/plan/colouring.h"
#include "core/plan/packing/palette_search.h"

namespace slotgraph {

struct WeightedColouring {
  Colouring colours;      // colour 0 is a heaviest one, and so on
  std::int64_t cost = 0;  // sum over the colours of their heaviest node
  bool optimal = false;   // no colouring costs less
  std::int64_t steps = 0;
};

// The sum over the colours of their heaviest node.
std::int64_t cost_of(const Colouring& colouring, const std::vector<std::int64_t>& weights);

// The cheapest of: DSATUR; DSATUR by falling weight; either one recoloured class by class; as far
// as half of the `steps` go, branch and bound, which for small graphs proves the optimum; and with
// the rest a search from the palette `fewest`, whose sum no colouring can go below. It ends as soon
// as the cost is that sum. Deterministic; never more expensive than DSATUR.
WeightedColouring colour(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
                         const Palette& fewest, std::int64_t steps);

}  // namespace slotgraph

#endif  // CORE_PLAN_PACKING_WEIGHTED_COLOURING_H_

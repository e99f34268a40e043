// Colourings with a given palette: colours of given capacities, and nodes no heavier than theirs.
#ifndef CORE_PLAN_PACKING_PALETTE_SEARCH_H_
#define CORE_PLAN_PACKING_PALETTE_SEARCH_H_

#include <cstdint>
#include <vector>

#include "core/plan/colouring.h"

namespace slotgraph {

using Palette = std::vector<std::int64_t>;  // capacities

// Colours as many nodes as it can by moving one at a time into a colour and those in its way out of
// it, with a memory of what was moved last (Blochliger and Zufferey, "A graph coloring heuristic
// using partial solutions and a reactive tabu scheme", 2008). Starts from `start`, in which -1
// stands for no colour; counts the moves down from `steps`. Returns the best colouring: one
// without -1 is whole. Deterministic.
Colouring colour_with_palette(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
                              const Palette& palette, Colouring start, std::int64_t& steps,
                              std::int64_t most_moves);

// Looks for a cheaper colouring than `best`, whose cost is that of its palette: from `fewest`, the
// palette of a lower bound, upwards as far as colours are missing, then by taking colours away or
// making them smaller. `steps` bounds the moves and is counted down.
Colouring search_palettes(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
                          const Palette& fewest, const Colouring& best, std::int64_t& steps);

}  // namespace slotgraph

#endif  // CORE_PLAN_PACKING_PALETTE_SEARCH_H_

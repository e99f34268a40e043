// Colours of a conflict graph: neighbours differ.
#ifndef CORE_PLAN_COLOURING_H_
#define CORE_PLAN_COLOURING_H_

#include <vector>

#include "core/plan/conflicts.h"

namespace slotgraph {

using Colouring = std::vector<int>;  // of each node, from 0 without gaps

// Colours greedily by saturation (Brelaz, "New methods to color the vertices of a graph", 1979) and
// breaks ties as the public planner does: the next node has most colours among its neighbours, then
// the largest degree, then the smallest number, and gets the smallest free colour. The graph has at
// most kMostNodes nodes.
Colouring dsatur(const ConflictGraph& graph);
// Does the same, but colours nodes of a higher rank first. `ranks` has a number from 0 to
// kMostNodes for each node.
Colouring dsatur(const ConflictGraph& graph, const std::vector<int>& ranks);

// Number of colours; 0 without nodes.
int colours_of(const Colouring& colouring);

inline constexpr int kMostNodes = 1 << 14;  // 32 MiB of bits

}  // namespace slotgraph

#endif  // CORE_PLAN_COLOURING_H_

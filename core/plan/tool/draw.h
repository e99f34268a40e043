// A plan as a picture.
#ifndef CORE_PLAN_TOOL_DRAW_H_
#define CORE_PLAN_TOOL_DRAW_H_

#include <string>

#include "core/plan/packing/packing.h"

namespace slotgraph {

inline constexpr int kMostDrawnEvents = 20'000;

// Draws the order of `microbatches` as SVG: events from left to right, a row for each arena as high
// as its bytes, a bar for each life of a frame in the colour of its chunk, the gradient arenas
// below, and the live bytes of every moment at the bottom. The plan must hold check(). Throws Error
// T02 unless the count is covered and has at most kMostDrawnEvents events, and the plan has layers.
std::string draw(const Plan& plan, const LayerBytes& bytes, int microbatches);

}  // namespace slotgraph

#endif  // CORE_PLAN_TOOL_DRAW_H_

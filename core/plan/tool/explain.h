// Why two frames share an arena or not.
#ifndef CORE_PLAN_TOOL_EXPLAIN_H_
#define CORE_PLAN_TOOL_EXPLAIN_H_

#include <optional>
#include <string>

#include "core/plan/plan.h"

namespace slotgraph {

struct Frame {
  int chunk = 0;
  int slot = 0;
  int layer = 0;
  bool operator==(const Frame&) const = default;
};

// `chunk,slot,layer`. Throws Error T05 unless it names a frame of the plan.
Frame frame_from(const std::string& text, const Plan& plan);

// Where in the covered orders, shortest first, and then in the base order, both frames are live.
struct Overlap {
  int microbatches = 0;
  bool is_capture = false;
  int begin = 0;         // event at which the second one becomes live
  int end = 0;           // event at which the first of them ends
  int microbatch_a = 0;  // that they hold then
  int microbatch_b = 0;
};
std::optional<Overlap> find_overlap(const Plan& plan, const Frame& a, const Frame& b);

// The answer as text of a few lines. The plan must hold check_structure.
std::string explain(const Plan& plan, const Frame& a, const Frame& b);

}  // namespace slotgraph

#endif  // CORE_PLAN_TOOL_EXPLAIN_H_

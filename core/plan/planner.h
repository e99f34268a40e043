// Makes slot plans: ring length, colours, the seven fields.
#ifndef CORE_PLAN_PLANNER_H_
#define CORE_PLAN_PLANNER_H_

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace slotgraph {

struct PlanRequest {
  std::string name;
  PipelineShape shape;
  std::vector<int> layers_per_chunk;  // graphable layers; may be 0
  std::vector<int> cp_sizes;          // of each variant, descending
  std::vector<int> counts;            // numbers of microbatches that a step may have, ascending
  int ring_length = 0;                // 0: the shortest that holds every count on every rank
  // The public planner colours without the order in which it captures, so that frames which are
  // live together only during capture may share an arena: true repeats that (mode `public`).
  bool omit_capture_order = false;
};

// Most microbatches that a chunk of this rank has in flight over all counts. Throws Error OP1, OP2.
int most_in_flight(const PipelineShape& shape, const std::vector<int>& counts);

// The shortest ring that holds all counts on every rank of the pipeline: the most in flight on rank
// 0, whose warm-up is the longest; but 2 if microbatches come one after another, as a slot must not
// return two gradients in a row. Throws Error OP1, OP2.
int shortest_ring(const PipelineShape& shape, const std::vector<int>& counts);

// Colours by DSATUR, fields in emission order; deterministic. A rank without layers gets no slots.
// Throws Error: OP1, OP2, PL00 as check_shape, PL14 the requested ring is too short. The result
// holds check(), except that one with omit_capture_order may break PL04 and PL05 in its base order.
Plan make_plan(const PlanRequest& request);

}  // namespace slotgraph

#endif  // CORE_PLAN_PLANNER_H_

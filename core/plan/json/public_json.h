// Files of the public planner (their format: core/plan/testdata/README.md).
#ifndef CORE_PLAN_JSON_PUBLIC_JSON_H_
#define CORE_PLAN_JSON_PUBLIC_JSON_H_

#include <nlohmann/json.hpp>

#include "core/json_reader.h"
#include "core/plan/plan.h"
#include "core/plan/planner.h"

namespace slotgraph {

enum class PublicSlots {
  kPublished,  // as the public planner printed them
  kCorrected,  // with the capture order among the covered orders, where the file has them
};
// Reads the plan of such a file; it is not checked.
Plan plan_from_public(const JsonReader& reader, PublicSlots slots);

// What to plan for a `config` object. The limit of microbatches is `max_microbatches`; without it,
// the larger of `runtime_microbatches` and the bound of the data scheduler. Throws Error J03-J04,
// OP1, OC1, OC2.
PlanRequest request_from_config(const JsonReader& config);

// The fields that the public planner derives from a `config` object, as it derives them: without
// the capture order among the covered orders, and `with_capture_order` where that matters.
nlohmann::json public_document(const JsonReader& config);

}  // namespace slotgraph

#endif  // CORE_PLAN_JSON_PUBLIC_JSON_H_

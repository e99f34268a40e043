// Plans in JSON.
#ifndef CORE_PLAN_JSON_PLAN_JSON_H_
#define CORE_PLAN_JSON_PLAN_JSON_H_

#include <nlohmann/json.hpp>

#include "core/plan/json/reader.h"
#include "core/plan/plan.h"

namespace slotgraph {

nlohmann::json to_json(const Plan& plan);
// The plan is not checked.
Plan plan_from_json(const JsonReader& reader);

// Reads the fields `slots` and `user_grad_arena_of_chunk_slot` into a plan.
void read_slots(const JsonReader& reader, Plan& plan);

}  // namespace slotgraph

#endif  // CORE_PLAN_JSON_PLAN_JSON_H_

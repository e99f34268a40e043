// Plans in JSON.
#ifndef CORE_PLAN_JSON_PLAN_JSON_H_
#define CORE_PLAN_JSON_PLAN_JSON_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "core/json_reader.h"
#include "core/plan/plan.h"

namespace slotgraph {

inline constexpr int kMostCount = 1 << 20;  // of every count in a file: larger ones are mistakes

nlohmann::json to_json(const Plan& plan);
// The plan is not checked.
Plan plan_from_json(const JsonReader& reader);

// Parts of plans. A slot is a list of its seven fields.
nlohmann::json to_json(const std::vector<Slot>& slots);
std::vector<Slot> slots_from_json(const JsonReader& reader);
// The four fields of a shape.
nlohmann::json to_json(const PipelineShape& shape);
// Reads pipeline_size, pipeline_rank, virtual_stages and microbatch_group_size of an object; the
// last two are 0 or null without virtual stages.
PipelineShape shape_from_json(const JsonReader& reader);
// Reads the fields `slots` and `user_grad_arena_of_chunk_slot` into a plan.
void read_slots(const JsonReader& reader, Plan& plan);

}  // namespace slotgraph

#endif  // CORE_PLAN_JSON_PLAN_JSON_H_

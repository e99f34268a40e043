// Plans in JSON: our own form, and the files of the public planner.
#ifndef CORE_PLAN_JSON_PLAN_JSON_H_
#define CORE_PLAN_JSON_PLAN_JSON_H_

#include <nlohmann/json.hpp>

#include "core/plan/json/reader.h"
#include "core/plan/plan.h"

namespace slotgraph {

nlohmann::json to_json(const Plan& plan);
// Reads our own form; the plan is not checked.
Plan plan_from_json(const JsonReader& reader);

enum class PublicSlots {
  kPublished,  // as the public planner printed them
  kCorrected,  // with the capture order among the covered orders, where the file has them
};
// Reads a file of the public planner (the format of testdata's README.md).
Plan plan_from_public(const JsonReader& reader, PublicSlots slots);

}  // namespace slotgraph

#endif  // CORE_PLAN_JSON_PLAN_JSON_H_

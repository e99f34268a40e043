// Plan files: a plan with its schema, capabilities and digest, so that a reader knows whether it
// understands the plan and whether somebody changed it.
#ifndef CORE_PLAN_JSON_PLAN_DOCUMENT_H_
#define CORE_PLAN_JSON_PLAN_DOCUMENT_H_

#include <nlohmann/json.hpp>

#include "core/plan/json/reader.h"
#include "core/plan/plan.h"

namespace slotgraph {

// Canonical form: keys sorted; dump() without arguments has no spaces. The plan as for handshake().
nlohmann::json document_of(const Plan& plan);

// Throws Error: J03-J05, H01 another schema, H03 a digest that is not the plan's. The plan is not
// checked otherwise.
Plan plan_from_document(const JsonReader& reader);

// A plan in any form: a plan file, a bare plan, or a file of the public planner (corrected slots).
Plan plan_from_any(const JsonReader& reader);

}  // namespace slotgraph

#endif  // CORE_PLAN_JSON_PLAN_DOCUMENT_H_

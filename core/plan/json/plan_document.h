// Plan files: a plan with its schema, capabilities and digest, so that a reader knows whether it
// understands the plan and whether somebody changed it.
#ifndef CORE_PLAN_JSON_PLAN_DOCUMENT_H_
#define CORE_PLAN_JSON_PLAN_DOCUMENT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "core/json_reader.h"
#include "core/plan/plan.h"

namespace slotgraph {

// Canonical form: keys sorted; dump() without arguments has no spaces. The plan as for handshake().
nlohmann::json document_of(const Plan& plan);

// Throws Error: J03-J05, H01 another schema, H03 a digest or H02 capabilities that are not the
// plan's, and what check_structure throws.
Plan plan_from_document(const JsonReader& reader);

// What the documents of all kinds of plans say of themselves. Throws Error H01, H03.
void check_schema(const JsonReader& schema);
void check_digest(const JsonReader& digest, const std::string& expected);

// A plan in any form: a plan file, a bare plan, or a file of the public planner (corrected slots).
Plan plan_from_any(const JsonReader& reader);

}  // namespace slotgraph

#endif  // CORE_PLAN_JSON_PLAN_DOCUMENT_H_

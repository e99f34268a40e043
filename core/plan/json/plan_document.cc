#include "core/plan/json/plan_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/plan/handshake.h"
#include "core/plan/json/plan_json.h"
#include "core/plan/json/public_json.h"

namespace slotgraph {

nlohmann::json document_of(const Plan& plan) {
  const Handshake mine = handshake(plan);
  return {{"schema", mine.schema},
          {"capabilities", mine.capabilities},
          {"digest", mine.digest},
          {"plan", to_json(plan)}};
}

void check_schema(const JsonReader& schema) {
  const std::int64_t found = schema.integer();
  if (found == kPlanSchema) return;
  throw Error(Error::kInput,
              {"H01", schema.path(), fmt::format("schema {}", found),
               fmt::format("schema {}", kPlanSchema), "make the plan with this version"});
}

void check_digest(const JsonReader& digest, const std::string& expected) {
  const std::string found = digest.text();
  if (found == expected) return;
  throw Error(Error::kInput, {"H03", digest.path(), fmt::format("{:.12}...", found),
                              fmt::format("{:.12}..., the digest of the plan in it", expected),
                              "the plan was changed: make it again"});
}

Plan plan_from_document(const JsonReader& reader) {
  reader.allow_only({"schema", "capabilities", "digest", "plan"});
  check_schema(reader.field("schema"));
  Plan plan = plan_from_json(reader.field("plan"));
  check_digest(reader.field("digest"), digest_of(plan));
  check_structure(plan);
  const JsonReader capabilities = reader.field("capabilities");
  std::vector<std::string> names;
  for (const JsonReader& name : capabilities.elements()) names.push_back(name.text());
  if (const auto expected_names = capabilities_of(plan); names != expected_names) {
    throw Error(Error::kInput, {"H02", capabilities.path(), fmt::format("{}", names),
                                fmt::format("{}, what the plan in it asks for", expected_names),
                                "the plan was changed: make it again"});
  }
  return plan;
}

Plan plan_from_any(const JsonReader& reader) {
  if (reader.has("schema")) return plan_from_document(reader);
  if (reader.has("config")) return plan_from_public(reader, PublicSlots::kCorrected);
  return plan_from_json(reader);
}

}  // namespace slotgraph

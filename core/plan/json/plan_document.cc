#include "core/plan/json/plan_document.h"

#include <fmt/format.h>

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

Plan plan_from_document(const JsonReader& reader) {
  reader.allow_only({"schema", "capabilities", "digest", "plan"});
  const JsonReader schema = reader.field("schema");
  if (const std::int64_t found = schema.integer(); found != kPlanSchema) {
    throw Error({"H01", schema.path(), fmt::format("schema {}", found),
                 fmt::format("schema {}", kPlanSchema), "make the plan with this version"});
  }
  Plan plan = plan_from_json(reader.field("plan"));
  const JsonReader digest = reader.field("digest");
  const std::string expected = digest_of(plan);
  if (const std::string found = digest.text(); found != expected) {
    throw Error({"H03", digest.path(), fmt::format("{:.12}...", found),
                 fmt::format("{:.12}..., the digest of the plan in it", expected),
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

#include "core/plan/json/packing_json.h"

#include "core/digest.h"
#include "core/plan/handshake.h"
#include "core/plan/json/plan_document.h"
#include "core/plan/json/plan_json.h"

namespace slotgraph {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 45;

std::vector<std::int64_t> read_bytes(const JsonReader& reader) {
  std::vector<std::int64_t> bytes;
  for (const JsonReader& each : reader.elements()) bytes.push_back(each.integer(0, kMostBytes));
  return bytes;
}

}  // namespace

LayerBytes layer_bytes_from_json(const JsonReader& reader) {
  LayerBytes bytes;
  for (const JsonReader& chunk : reader.elements()) bytes.push_back(read_bytes(chunk));
  return bytes;
}

nlohmann::json to_json(const FirstFreePlan& plan) {
  nlohmann::json json = to_json(plan.shape);
  json.update({{"name", plan.name},
               {"slot_rule", "first-free"},
               {"layers_per_chunk", plan.layers_per_chunk},
               {"cp_sizes", plan.cp_sizes},
               {"covered_microbatch_counts", plan.covered_counts},
               {"arena_bytes", plan.arena_bytes},
               {"slots_of_chunk", plan.slots_of_chunk},
               {"slots", to_json(plan.slots)}});
  return json;
}

FirstFreePlan first_free_from_json(const JsonReader& reader) {
  reader.allow_only({"name", "slot_rule", "pipeline_size", "pipeline_rank", "virtual_stages",
                     "microbatch_group_size", "layers_per_chunk", "cp_sizes",
                     "covered_microbatch_counts", "arena_bytes", "slots_of_chunk", "slots"});
  reader.field("slot_rule").choice({"first-free"});
  FirstFreePlan plan;
  plan.name = reader.field("name").text();
  plan.shape = shape_from_json(reader);
  plan.layers_per_chunk = reader.field("layers_per_chunk").integers(0, kMostFrames);
  plan.cp_sizes = reader.field("cp_sizes").integers(1, kMostCount);
  plan.covered_counts = reader.field("covered_microbatch_counts").integers(1, kMostCount);
  plan.arena_bytes = read_bytes(reader.field("arena_bytes"));
  plan.slots_of_chunk = reader.field("slots_of_chunk").integers(0, kMostCount);
  plan.slots = slots_from_json(reader.field("slots"));
  return plan;
}

nlohmann::json document_of(const FirstFreePlan& plan) {
  const nlohmann::json json = to_json(plan);
  return {{"schema", kPlanSchema}, {"digest", sha256(json.dump())}, {"first_free_plan", json}};
}

FirstFreePlan first_free_from_document(const JsonReader& reader) {
  reader.allow_only({"schema", "digest", "first_free_plan"});
  check_schema(reader.field("schema"));
  FirstFreePlan plan = first_free_from_json(reader.field("first_free_plan"));
  check_digest(reader.field("digest"), sha256(to_json(plan).dump()));
  return plan;
}

bool is_first_free(const JsonReader& reader) {
  return reader.has("slot_rule") || reader.has("first_free_plan");
}

FirstFreePlan first_free_from_any(const JsonReader& reader) {
  return reader.has("slot_rule") ? first_free_from_json(reader) : first_free_from_document(reader);
}

}  // namespace slotgraph

#include "core/plan/json/plan_json.h"

namespace slotgraph {
namespace {

constexpr int kMost = 1 << 20;  // bound of every count in a file: larger numbers are mistakes

Slot read_slot(const JsonReader& reader) {
  const std::vector<int> fields = reader.integers(0, kMost);
  if (fields.size() != 7) reader.refuse("exactly seven integers");
  return {fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6]};
}

int read_count(const JsonReader& reader, int low) {
  return static_cast<int>(reader.integer(low, kMost));
}

}  // namespace

void read_slots(const JsonReader& reader, Plan& plan) {
  for (const JsonReader& slot : reader.field("slots").elements())
    plan.slots.push_back(read_slot(slot));
  for (const JsonReader& chunk : reader.field("user_grad_arena_of_chunk_slot").elements()) {
    plan.user_grad_colours.push_back(chunk.integers(0, kMost));
  }
}

nlohmann::json to_json(const Plan& plan) {
  nlohmann::json slots = nlohmann::json::array();
  for (const Slot& s : plan.slots) {
    slots.push_back({s.saved_arena_id, s.physical_slot, s.io_branch_id, s.model_chunk, s.layer,
                     s.warmup_alias_group, s.user_grad_arena_id});
  }
  return {{"name", plan.name},
          {"pipeline_size", plan.shape.pipeline_size},
          {"pipeline_rank", plan.shape.rank},
          {"virtual_stages", plan.shape.virtual_stages},
          {"microbatch_group_size", plan.shape.microbatch_group_size},
          {"layers_per_chunk", plan.layers_per_chunk},
          {"cp_sizes", plan.cp_sizes},
          {"ring_length", plan.ring_length},
          {"covered_microbatch_counts", plan.covered_counts},
          {"base_order", plan.base_order},
          {"slots", slots},
          {"user_grad_arena_of_chunk_slot", plan.user_grad_colours}};
}

Plan plan_from_json(const JsonReader& reader) {
  reader.allow_only({"name", "pipeline_size", "pipeline_rank", "virtual_stages",
                     "microbatch_group_size", "layers_per_chunk", "cp_sizes", "ring_length",
                     "covered_microbatch_counts", "base_order", "slots",
                     "user_grad_arena_of_chunk_slot"});
  Plan plan;
  plan.name = reader.field("name").text();
  plan.shape = {read_count(reader.field("pipeline_size"), 1),
                read_count(reader.field("pipeline_rank"), 0),
                read_count(reader.field("virtual_stages"), 0),
                read_count(reader.field("microbatch_group_size"), 0)};
  plan.layers_per_chunk = reader.field("layers_per_chunk").integers(0, 1024);
  plan.cp_sizes = reader.field("cp_sizes").integers(1, kMost);
  plan.ring_length = read_count(reader.field("ring_length"), 1);
  plan.covered_counts = reader.field("covered_microbatch_counts").integers(1, kMost);
  plan.base_order = reader.field("base_order").integers(-kMost, kMost);
  read_slots(reader, plan);
  return plan;
}

}  // namespace slotgraph

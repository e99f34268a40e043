#include "core/plan/json/plan_json.h"

namespace slotgraph {
namespace {

Slot read_slot(const JsonReader& reader) {
  const std::vector<int> fields = reader.integers(0, kMostCount);
  if (fields.size() != 7) reader.refuse("exactly seven integers");
  return {fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6]};
}

int read_count(const JsonReader& reader, int low) {
  return static_cast<int>(reader.integer(low, kMostCount));
}

int read_optional(const JsonReader& reader) { return reader.is_null() ? 0 : read_count(reader, 0); }

}  // namespace

nlohmann::json to_json(const std::vector<Slot>& slots) {
  nlohmann::json json = nlohmann::json::array();
  for (const Slot& s : slots) {
    json.push_back({s.colour, s.physical_slot, s.io_branch_id, s.model_chunk, s.layer, s.module,
                    s.gradient_colour});
  }
  return json;
}

std::vector<Slot> slots_from_json(const JsonReader& reader) {
  std::vector<Slot> slots;
  for (const JsonReader& slot : reader.elements()) slots.push_back(read_slot(slot));
  return slots;
}

PipelineShape shape_from_json(const JsonReader& reader) {
  return {read_count(reader.field("pipeline_size"), 1),
          read_count(reader.field("pipeline_rank"), 0),
          read_optional(reader.field("virtual_stages")),
          read_optional(reader.field("microbatch_group_size"))};
}

void read_slots(const JsonReader& reader, Plan& plan) {
  plan.slots = slots_from_json(reader.field("slots"));
  for (const JsonReader& chunk : reader.field("user_grad_arena_of_chunk_slot").elements()) {
    plan.gradient_colours.push_back(chunk.integers(0, kMostCount));
  }
}

nlohmann::json to_json(const PipelineShape& shape) {
  return {{"pipeline_size", shape.pipeline_size},
          {"pipeline_rank", shape.rank},
          {"virtual_stages", shape.virtual_stages},
          {"microbatch_group_size", shape.microbatch_group_size}};
}

nlohmann::json to_json(const Plan& plan) {
  nlohmann::json json = to_json(plan.shape);
  json.update({{"name", plan.name},
               {"layers_per_chunk", plan.layers_per_chunk},
               {"cp_sizes", plan.cp_sizes},
               {"ring_length", plan.ring_length},
               {"covered_microbatch_counts", plan.covered_counts},
               {"base_order", plan.base_order},
               {"slots", to_json(plan.slots)},
               {"user_grad_arena_of_chunk_slot", plan.gradient_colours}});
  return json;
}

Plan plan_from_json(const JsonReader& reader) {
  reader.allow_only({"name", "pipeline_size", "pipeline_rank", "virtual_stages",
                     "microbatch_group_size", "layers_per_chunk", "cp_sizes", "ring_length",
                     "covered_microbatch_counts", "base_order", "slots",
                     "user_grad_arena_of_chunk_slot"});
  Plan plan;
  plan.name = reader.field("name").text();
  plan.shape = shape_from_json(reader);
  plan.layers_per_chunk = reader.field("layers_per_chunk").integers(0, kMostFrames);
  plan.cp_sizes = reader.field("cp_sizes").integers(1, kMostCount);
  plan.ring_length = read_count(reader.field("ring_length"), 1);
  plan.covered_counts = reader.field("covered_microbatch_counts").integers(1, kMostCount);
  plan.base_order = reader.field("base_order").integers(-kMostCount, kMostCount);
  read_slots(reader, plan);
  return plan;
}

}  // namespace slotgraph

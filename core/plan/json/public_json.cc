#include "core/plan/json/public_json.h"

#include <algorithm>

#include "core/order/branch_order.h"
#include "core/order/microbatch_counts.h"
#include "core/plan/colouring.h"
#include "core/plan/conflicts.h"
#include "core/plan/json/plan_json.h"

namespace slotgraph {
namespace {

int read_count(const JsonReader& reader, int low) {
  return static_cast<int>(reader.integer(low, kMostCount));
}

// null means that the shape has no virtual stages.
int read_optional(const JsonReader& reader) { return reader.is_null() ? 0 : read_count(reader, 1); }

bool has_pipeline(const JsonReader& config) {
  return read_count(config.field("pipeline_size"), 1) > 1;
}

// Most microbatches of the data scheduler: one sample for each rank and microbatch of the step.
std::int64_t read_bound(const JsonReader& config) {
  const std::vector<int> sizes = config.field("cp_sizes").integers(1, kMostCount);
  if (sizes.empty()) config.field("cp_sizes").refuse("at least one size");
  return most_microbatches(
      BatchBound{std::int64_t{read_count(config.field("runtime_microbatches"), 1)} *
                     read_count(config.field("dp_size"), 1),
                 read_count(config.field("dp_cp_size"), 1),
                 read_count(config.field("max_seqlen_per_dp_cp_rank"), 1),
                 *std::min_element(sizes.begin(), sizes.end()),
                 config.field("max_sequence_length").integer(1, std::int64_t{1} << 40),
                 read_optional(config.field("microbatch_group_size"))});
}

int read_limit(const JsonReader& config) {
  if (!has_pipeline(config)) return 1;
  if (config.has("max_microbatches")) return read_count(config.field("max_microbatches"), 1);
  const std::int64_t runtime = read_count(config.field("runtime_microbatches"), 1);
  const std::int64_t limit = std::max(runtime, read_bound(config));
  if (limit > kMostCount) config.refuse("a bound of at most 1048576 microbatches");
  return static_cast<int>(limit);
}

nlohmann::json null_unless(bool present, std::int64_t value) {
  return present ? nlohmann::json(value) : nlohmann::json(nullptr);
}

int count_gradient_colours(const Plan& plan) {
  int colours = 0;
  for (const auto& chunk : plan.gradient_colours)
    for (const int colour : chunk) colours = std::max(colours, colour + 1);
  return colours;
}

// The colours of a plan and what they were made from.
nlohmann::json colours_document(const PlanRequest& request, const Plan& plan) {
  std::vector<std::int64_t> layers;  // of each place
  for (const int of_chunk : plan.layers_per_chunk)
    layers.insert(layers.end(), plan.ring_length, of_chunk);
  const Liveness liveness = walk(covering_orders(plan.shape, plan.covered_counts, plan.ring_length,
                                                 !request.omit_capture_order),
                                 plan.chunks(), plan.ring_length, layers);
  int colours = 0;
  for (const Slot& slot : plan.slots) colours = std::max(colours, slot.colour + 1);
  const nlohmann::json json = to_json(plan);
  return {{"slots", json.at("slots")},
          {"user_grad_arena_of_chunk_slot", json.at("user_grad_arena_of_chunk_slot")},
          {"saved_arenas", colours},
          {"user_grad_arenas", count_gradient_colours(plan)},
          {"saved_conflict_edges",
           frame_conflicts(liveness.together, plan.layers_per_chunk, plan.ring_length).edges()},
          {"peak_live_frames", liveness.peak}};
}

nlohmann::json ring_of_each_rank(const PlanRequest& request) {
  nlohmann::json rings = nlohmann::json::array();
  for (int rank = 0; rank < request.shape.pipeline_size; ++rank) {
    PipelineShape shape = request.shape;
    shape.rank = rank;
    rings.push_back(most_in_flight(shape, request.counts));
  }
  return rings;
}

}  // namespace

Plan plan_from_public(const JsonReader& reader, PublicSlots slots) {
  Plan plan;
  const JsonReader config = reader.field("config");
  plan.name = reader.field("name").text();
  plan.shape = shape_from_json(config);
  plan.layers_per_chunk = config.field("layers_per_chunk").integers(0, kMostFrames);
  plan.cp_sizes = config.field("cp_sizes").integers(1, kMostCount);
  plan.ring_length = read_count(reader.field("ring_length"), 1);
  plan.covered_counts = reader.field("covered_microbatch_counts").integers(1, kMostCount);
  plan.base_order = reader.field("base_order").integers(-kMostCount, kMostCount);
  const bool corrected = slots == PublicSlots::kCorrected && reader.has("with_capture_order");
  read_slots(corrected ? reader.field("with_capture_order") : reader, plan);
  return plan;
}

PlanRequest request_from_config(const JsonReader& config) {
  config.allow_only({"pipeline_size", "pipeline_rank", "virtual_stages", "microbatch_group_size",
                     "layers_per_chunk", "layer_layout", "cp_sizes", "dp_cp_size", "dp_size",
                     "runtime_microbatches", "max_seqlen_per_dp_cp_rank", "max_sequence_length",
                     "data_scheduler_bound", "max_microbatches"});
  PlanRequest request;
  request.shape = shape_from_json(config);
  request.layers_per_chunk = config.field("layers_per_chunk").integers(0, kMostFrames);
  request.cp_sizes = config.field("cp_sizes").integers(1, kMostCount);
  request.counts = aligned_counts(request.shape, read_limit(config));
  return request;
}

nlohmann::json public_document(const JsonReader& config) {
  PlanRequest request = request_from_config(config);
  request.omit_capture_order = true;
  const Plan plan = make_plan(request);
  nlohmann::json document = colours_document(request, plan);
  const int variants = plan.variants();
  const int limit = request.counts.back();
  const bool pipeline = has_pipeline(config);
  std::vector<int> layers;
  for (int variant = 0; variant < variants; ++variant)
    layers.insert(layers.end(), plan.layers_per_chunk.begin(), plan.layers_per_chunk.end());
  document["base_order"] = plan.base_order;
  document["branch_order"] =
      plan.layers() == 0
          ? nlohmann::json(nullptr)
          : nlohmann::json(branch_order(plan.base_order, plan.chunks(), variants,
                                        canonical_variant(variants), BranchArrangement::kLockstep));
  document["ring_length"] = plan.ring_length;
  document["ring_length_of_each_rank"] = ring_of_each_rank(request);
  document["published_microbatch_limit"] = null_unless(pipeline, limit);
  document["covered_microbatch_counts"] = request.counts;
  document["graph_layers_per_chunk_all_variants"] =
      plan.layers() == 0 ? nlohmann::json(nullptr) : nlohmann::json(layers);
  document["modules_passed"] = variants * plan.layers();
  document["graph_callables"] = plan.slots.size();
  document["data_scheduler_bound"] = null_unless(pipeline, pipeline ? read_bound(config) : 0);
  document["max_microbatches"] = null_unless(pipeline, limit);
  const bool covered = std::find(request.counts.begin(), request.counts.end(), plan.ring_length) !=
                       request.counts.end();
  document["capture_order_covered"] = covered;
  if (!covered) {
    request.omit_capture_order = false;
    document["with_capture_order"] = colours_document(request, make_plan(request));
  }
  return document;
}

}  // namespace slotgraph

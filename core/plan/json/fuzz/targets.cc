#include "core/plan/json/fuzz/targets.h"

#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "core/order/balanced_cp.h"
#include "core/plan/handshake.h"
#include "core/plan/json/plan_document.h"
#include "core/plan/json/plan_json.h"
#include "core/plan/json/public_json.h"
#include "core/plan/json/schedule_json.h"

namespace slotgraph {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// Large but legal numbers only cost time.
constexpr std::int64_t kMostWork = 1 << 13;
bool is_small(const Plan& plan) {
  const std::int64_t last = plan.covered_counts.empty() ? 0 : plan.covered_counts.back();
  return last * plan.chunks() < kMostWork && plan.covered_counts.size() < 64 &&
         plan.ring_length < 256 && plan.layers() < 64;
}

template <typename Work>
void run(const std::string& text, Work work) {
  try {
    const nlohmann::json json = parse_json(text, "input");
    work(JsonReader(json, "input"));
  } catch (const Error& error) {
    require(!error.rule().empty());
  }
}

}  // namespace

void fuzz_plan(const std::string& text) {
  run(text, [](const JsonReader& reader) {
    const Plan plan = plan_from_any(reader);
    const nlohmann::json json = to_json(plan);
    require(to_json(plan_from_json(JsonReader(json, "again"))) == json);
    if (!is_small(plan)) return;
    check(plan);
    check_agreement("a", handshake(plan), "b", handshake(plan));
    for (const int count : plan.covered_counts) check_step(plan, training_order(plan.shape, count));
  });
}

void fuzz_shape(const std::string& text) {
  run(text, [](const JsonReader& reader) {
    const PlanRequest request =
        request_from_config(reader.has("config") ? reader.field("config") : reader);
    Plan small;
    small.covered_counts = request.counts;
    small.layers_per_chunk = request.layers_per_chunk;
    if (request.layers_per_chunk.size() > 64 || !is_small(small)) return;
    const Plan plan = make_plan(request);
    try {
      check(plan);
    } catch (const Error&) {
      std::abort();
    }
  });
}

void fuzz_schedule(const std::string& text) {
  run(text, [](const JsonReader& reader) {
    const PublicSchedule given = schedule_from_public(reader);
    if (given.limits.ranks > 256 || given.lengths.size() > 256) return;
    const CpSchedule balanced = balanced_schedule(given.limits, given.lengths, {});
    const CpSchedule greedy = greedy_schedule(given.limits, given.lengths);
    try {
      check_schedule(given.limits, given.lengths, balanced);
      check_schedule(given.limits, given.lengths, greedy);
    } catch (const Error&) {
      std::abort();
    }
  });
}

}  // namespace slotgraph

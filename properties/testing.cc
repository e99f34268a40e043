#include "properties/testing.h"

#include <algorithm>

#include "core/device/device.h"
#include "core/models/blocks.h"
#include "core/plan/json/public_json.h"
#include "fuzz/execute/execute.h"

namespace slotgraph::properties {

fuzz::Case uniform_case(const std::string& plan, const std::string& block,
                        const std::string& dtype) {
  const std::string path = "core/plan/testdata/" + plan + ".json";
  const nlohmann::json json = read_json_file(path);
  fuzz::Case value;
  value.seed = 5;
  value.plan = plan_from_public(JsonReader(json, path), PublicSlots::kCorrected);
  value.dtype = dtype;
  for (int i = 0; i < value.plan.layers(); ++i) value.layers.push_back({block});
  for (const int cp : value.plan.cp_sizes) value.tokens.push_back(std::max(24 / cp, 2));
  value.schedule.source = "rotation";
  const auto& counts = value.plan.covered_counts;
  const auto above =
      std::find_if(counts.begin(), counts.end(), [&](int c) { return c > value.plan.ring_length; });
  const int count = above == counts.end() ? counts.back() : *above;
  for (int i = 0; i < count; ++i) value.schedule.variants.push_back(i % value.plan.variants());
  value.order_seed = 11;
  value.modes = slot_modes();
  value.shadow = true;
  return value;
}

const fuzz::Sources& sources() {
  static const fuzz::Sources& instance = *new fuzz::Sources(fuzz::read_sources(
      "core/plan/testdata", "core/order/testdata/schedules.jsonl", "", block_names()));
  return instance;
}

std::string outcome(const fuzz::Case& value) {
  device::initialise();
  const Record record = fuzz::execute(value);
  if (record.verdict == Verdict::kHolds) return "holds";
  std::string text;
  for (const Finding& finding : record.findings) {
    text += finding.property + ", " + finding.execution + ": " + finding.where + ": " +
            finding.what + "\n";
  }
  return text;
}

}  // namespace slotgraph::properties

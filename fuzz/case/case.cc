#include "fuzz/case/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/digest.h"
#include "core/error.h"
#include "core/plan/json/plan_json.h"

namespace slotgraph::fuzz {
namespace {

constexpr std::int64_t kMostTokens = 1 << 16;
constexpr int kMostMicrobatches = 1024;

nlohmann::json to_json(const LayerCase& layer) {
  return {{"block", layer.block},
          {"trainable", layer.trainable},
          {"input_gradient", layer.input_gradient},
          {"extra_gradients", layer.extra_gradients},
          {"aliased_inputs", layer.aliased_inputs}};
}

LayerCase layer_from_json(const JsonReader& reader) {
  reader.allow_only({"block", "trainable", "input_gradient", "extra_gradients", "aliased_inputs"});
  return {reader.field("block").text(),
          reader.field("trainable").choice({"all", "none", "alternate"}),
          reader.field("input_gradient").boolean(), reader.field("extra_gradients").boolean(),
          reader.field("aliased_inputs").boolean()};
}

void require_fit(bool holds, const JsonReader& reader, const char* field, std::string found,
                 std::string expected) {
  if (holds) return;
  throw Error(Error::kInput, {"F02", reader.path() + "/" + field, std::move(found),
                              std::move(expected), "correct the case"});
}

void check_fit(const JsonReader& reader, const Case& value) {
  const Plan& plan = value.plan;
  check(plan);
  require_fit(static_cast<int>(value.layers.size()) == plan.layers(), reader, "layers",
              fmt::format("{} layers", value.layers.size()),
              fmt::format("{}, as in the plan", plan.layers()));
  require_fit(static_cast<int>(value.tokens.size()) == plan.variants(), reader, "tokens",
              fmt::format("{} variants", value.tokens.size()),
              fmt::format("{}, as in the plan", plan.variants()));
  for (const int variant : value.schedule.variants) {
    require_fit(variant < plan.variants(), reader, "schedule/variants",
                fmt::format("variant {}", variant), fmt::format("0 to {}", plan.variants() - 1));
  }
  const int count = static_cast<int>(value.schedule.variants.size());
  const auto& covered = plan.covered_counts;
  require_fit(std::find(covered.begin(), covered.end(), count) != covered.end(), reader,
              "schedule/variants", fmt::format("{} microbatches", count),
              "a covered count of the plan");
}

}  // namespace

bool Case::mixes() const {
  const auto& variants = schedule.variants;
  const auto ring = static_cast<std::size_t>(plan.ring_length);
  for (std::size_t begin = 0; begin < variants.size(); ++begin) {
    const std::size_t end = std::min(begin + ring, variants.size());
    const std::set<int> used(variants.begin() + static_cast<std::ptrdiff_t>(begin),
                             variants.begin() + static_cast<std::ptrdiff_t>(end));
    if (used.size() > 1) return true;
  }
  return false;
}

bool Case::equal_tokens() const {
  return std::all_of(tokens.begin(), tokens.end(),
                     [&](std::int64_t t) { return t == tokens.front(); });
}

nlohmann::json to_json(const Case& value) {
  nlohmann::json layers = nlohmann::json::array();
  for (const LayerCase& layer : value.layers) layers.push_back(to_json(layer));
  return {{"schema", kCaseSchema},
          {"seed", value.seed},
          {"plan", slotgraph::to_json(value.plan)},
          {"schedule", {{"source", value.schedule.source}, {"variants", value.schedule.variants}}},
          {"layers", layers},
          {"hidden", value.hidden},
          {"dtype", value.dtype},
          {"tokens", value.tokens},
          {"steps", value.steps},
          {"order_seed", value.order_seed},
          {"addresses", value.addresses},
          {"poison", value.poison},
          {"modes", names_of(value.modes)},
          {"shadow", value.shadow},
          {"partial_backward", value.partial_backward}};
}

Case case_from_json(const JsonReader& reader) {
  const std::int64_t schema = reader.field("schema").integer();
  if (schema != kCaseSchema) {
    throw Error(Error::kInput,
                {"F01", reader.path() + "/schema", fmt::to_string(schema),
                 fmt::to_string(kCaseSchema), "use the version of slotgraph that wrote the case"});
  }
  reader.allow_only({"schema", "seed", "plan", "schedule", "layers", "hidden", "dtype", "tokens",
                     "steps", "order_seed", "addresses", "poison", "modes", "shadow",
                     "partial_backward"});
  Case value;
  value.seed = reader.field("seed").unsigned_integer();
  value.plan = plan_from_json(reader.field("plan"));
  const JsonReader schedule = reader.field("schedule");
  schedule.allow_only({"source", "variants"});
  value.schedule = {schedule.field("source").text(), schedule.field("variants").integers(0, 63)};
  if (value.schedule.variants.empty() || value.schedule.variants.size() > kMostMicrobatches) {
    schedule.field("variants").refuse(fmt::format("1 to {} microbatches", kMostMicrobatches));
  }
  for (const JsonReader& layer : reader.field("layers").elements())
    value.layers.push_back(layer_from_json(layer));
  value.hidden = reader.field("hidden").integer(1, 4096);
  value.dtype = reader.field("dtype").choice({"fp32", "fp64", "bf16"});
  for (const JsonReader& tokens : reader.field("tokens").elements())
    value.tokens.push_back(tokens.integer(1, kMostTokens));
  value.steps = static_cast<int>(reader.field("steps").integer(1, 100));
  value.order_seed = reader.field("order_seed").unsigned_integer();
  value.addresses = reader.field("addresses").choice({"ascending", "descending", "seeded"});
  value.poison = static_cast<int>(reader.field("poison").integer(0, 255));
  value.modes.clear();
  for (const JsonReader& mode : reader.field("modes").elements())
    value.modes.push_back(mode_from_name(mode.choice(names_of(slot_modes()))));
  value.shadow = reader.field("shadow").boolean();
  value.partial_backward = reader.field("partial_backward").boolean();
  check_fit(reader, value);
  return value;
}

Case read_case(const std::string& path) {
  const nlohmann::json json = read_json_file(path);
  return case_from_json(JsonReader(json, path));
}

std::string digest(const Case& value) { return sha256(to_json(value).dump()); }

}  // namespace slotgraph::fuzz

#include "fuzz/generate/generate.h"

#include <algorithm>

#include "core/random.h"
#include "fuzz/generate/draw.h"

namespace slotgraph::fuzz {
namespace {

std::vector<std::int64_t> token_counts(Draw& draw, const Plan& plan) {
  const std::int64_t total = draw(rc::gen::inRange<std::int64_t>(8, 257));
  const bool equal = draw.chance(2);
  std::vector<std::int64_t> tokens;
  for (const int cp : plan.cp_sizes) {
    tokens.push_back(equal ? std::max<std::int64_t>(total / plan.cp_sizes.front(), 1)
                           : std::max<std::int64_t>(total / cp, 1));
  }
  return tokens;
}

LayerCase layer(Draw& draw, const std::vector<std::string>& blocks) {
  LayerCase value;
  value.block = draw.one_of(blocks);
  value.trainable = draw.one_of<std::string>({"all", "all", "all", "all", "none", "alternate"});
  value.input_gradient = !draw.chance(5);
  value.extra_gradients = !draw.chance(4);
  value.aliased_inputs = draw.chance(4);
  return value;
}

}  // namespace

std::uint64_t case_seed(std::uint64_t campaign_seed, std::uint64_t index) {
  std::uint64_t state = campaign_seed ^ (kGolden * (index + 1));
  return split_mix64(state);
}

Generated generate(const Sources& sources, std::uint64_t seed) {
  Draw draw(seed);
  Generated result;
  Case& value = result.value;
  value.seed = seed;
  value.plan = draw.one_of(sources.plans);
  result.plan = value.plan.name;
  if (draw.chance(2)) {
    const RankSchedule schedule = draw.one_of(sources.schedules);
    value.schedule = {schedule.name, fit(schedule, value.plan)};
  } else {
    value.schedule = adversarial(draw, value.plan, 32);
  }
  result.schedule = value.schedule.source;
  result.skipped = value.schedule.variants.empty();
  // A model of a few kinds, as real ones are; now and then every layer is another one.
  std::vector<std::string> kinds;
  const int palette = 1 + draw.below(4);
  kinds.reserve(static_cast<std::size_t>(palette));
  for (int i = 0; i < palette; ++i) kinds.push_back(draw.one_of(sources.blocks));
  const int layers = value.plan.layers();
  value.layers.reserve(static_cast<std::size_t>(layers));
  for (int i = 0; i < layers; ++i) value.layers.push_back(layer(draw, kinds));
  value.dtype = draw.one_of<std::string>({"fp32", "fp32", "fp64", "bf16"});
  // The CPU's bf16 matrix products are ten times slower than its fp32 ones.
  value.hidden =
      draw.one_of<std::int64_t>(value.dtype == "bf16" ? std::vector<std::int64_t>{8, 12, 16}
                                                      : std::vector<std::int64_t>{8, 16, 24, 32});
  value.tokens = token_counts(draw, value.plan);
  value.order_seed = draw.chance(4) ? 0 : draw(rc::gen::arbitrary<std::uint64_t>());
  value.addresses = draw.one_of<std::string>({"ascending", "descending", "seeded"});
  value.poison = draw.one_of<int>({0xFF, 0xFF, 0x7F, 0x01});
  for (const Mode mode : slot_modes())
    if (mode != value.modes.front() && draw.chance(3)) value.modes.push_back(mode);
  // Every replay then touches all memory of the pool: small cases only.
  constexpr std::size_t most_branches = 64;
  value.shadow = draw.chance(4) && value.plan.slots.size() <= most_branches;
  value.partial_backward = draw.chance(4);
  return result;
}

}  // namespace slotgraph::fuzz

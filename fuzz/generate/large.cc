// Cases of real sizes, whose captures serve many schedules.
#include <algorithm>

#include "fuzz/generate/draw.h"
#include "fuzz/generate/generate.h"

namespace slotgraph::fuzz {
namespace {

struct Limits {
  int layers;
  std::size_t branches;
  int microbatches;
};

// The last shape is wider, and has fewer of the rest: a parameter gradient of it has 268 MB.
constexpr std::uint64_t kWide = kLargeShapes - 1;
constexpr Limits limits_of(std::uint64_t shape) {
  return shape == kWide ? Limits{2, 24, 12} : Limits{4, 64, 24};
}

std::vector<Plan> plans_within(const std::vector<Plan>& plans, const Limits& limits) {
  std::vector<Plan> found;
  for (const Plan& plan : plans) {
    const auto& layers = plan.layers_per_chunk;
    if (plan.layers() <= limits.layers && plan.slots.size() <= limits.branches &&
        plan.variants() > 1 && *std::max_element(layers.begin(), layers.end()) <= 2 &&
        plan.covered_counts.front() <= limits.microbatches)
      found.push_back(plan);
  }
  return found.empty() ? plans : found;
}

// Everything but the schedule.
Case shape_case(const Sources& sources, std::uint64_t campaign_seed, std::uint64_t shape) {
  constexpr std::uint64_t purpose = 0x5A9E;  // these seeds are no case's
  Draw draw(case_seed(campaign_seed ^ purpose, shape));
  Case value;
  value.seed = case_seed(campaign_seed ^ purpose, shape);
  value.plan = draw.one_of(plans_within(sources.plans, limits_of(shape)));
  // Each shape has attention or a perceptron in it, and every third a block of the zoo.
  const std::vector<std::string> kinds{shape % 2 == 0 ? "attention" : "mlp",
                                       shape % 3 == 2 ? draw.one_of(sources.blocks) : "mlp"};
  for (int i = 0; i < value.plan.layers(); ++i) {
    LayerCase layer;
    layer.block = kinds[static_cast<std::size_t>(i) % kinds.size()];
    layer.trainable = draw.one_of<std::string>({"all", "all", "all", "alternate"});
    layer.input_gradient = !draw.chance(5);
    layer.extra_gradients = !draw.chance(4);
    value.layers.push_back(layer);
  }
  value.dtype = shape / 2 % 2 == 0 ? "bf16" : "fp32";
  value.hidden = shape == kWide ? draw.one_of<std::int64_t>({2048, 4096}) : 1024;
  if (value.hidden > 2048) value.dtype = "bf16";
  const std::int64_t tokens = std::int64_t{64} * (1 + draw.below(8));
  const bool equal = draw.chance(2);
  for (const int cp : value.plan.cp_sizes)
    value.tokens.push_back(equal ? tokens : std::max<std::int64_t>(tokens / cp, 1));
  value.addresses = draw.one_of<std::string>({"ascending", "descending", "seeded"});
  // Besides placement one other slot mode, or none.
  const std::vector<Mode> slots = slot_modes();
  if (shape % slots.size() + 1 < slots.size())
    value.modes.push_back(slots[shape % slots.size() + 1]);
  value.partial_backward = draw.chance(4);
  return value;
}

// At most `most`, and a covered count.
void cut(std::vector<int>& variants, const Plan& plan, int most) {
  int count = 0;
  for (const int covered : plan.covered_counts) {
    if (covered <= std::min(most, static_cast<int>(variants.size())))
      count = std::max(count, covered);
  }
  variants.resize(static_cast<std::size_t>(count));
}

}  // namespace

Generated generate_large(const Sources& sources, std::uint64_t campaign_seed, std::uint64_t index) {
  const std::uint64_t shape = index / kLargeBlock % kLargeShapes;
  Draw draw(case_seed(campaign_seed, index));
  Generated result;
  Case& value = result.value;
  value = shape_case(sources, campaign_seed, shape);
  result.plan = value.plan.name;
  const int most = limits_of(shape).microbatches;
  if (draw.chance(2)) {
    const RankSchedule schedule = draw.one_of(sources.schedules);
    value.schedule = {schedule.name, fit(schedule, value.plan)};
    cut(value.schedule.variants, value.plan, most);
  }
  if (value.schedule.variants.empty()) value.schedule = adversarial(draw, value.plan, most);
  result.schedule = value.schedule.source;
  return result;
}

}  // namespace slotgraph::fuzz

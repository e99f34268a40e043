#include "fuzz/generate/draw.h"

#include <algorithm>

namespace slotgraph::fuzz {

ScheduleCase adversarial(Draw& draw, const Plan& plan, int most) {
  int count = plan.covered_counts.front();
  for (const int covered : plan.covered_counts) {
    if (covered <= most) count = std::max(count, covered);
  }
  ScheduleCase schedule{"adversarial", {}};
  const int style = draw.below(3);  // independent, runs of equal variants, strict rotation
  for (int i = 0; i < count; ++i) {
    const bool repeat = style == 1 && i > 0 && !draw.chance(3);
    const int next = style == 2 ? (i % plan.variants()) : draw.below(plan.variants());
    schedule.variants.push_back(repeat ? schedule.variants.back() : next);
  }
  const int window = std::min(count, plan.ring_length);
  const auto first = schedule.variants.begin();
  if (plan.variants() > 1 && window > 1 &&
      std::all_of(first, first + window, [&](int v) { return v == *first; })) {
    const int other = 1 + draw.below(window - 1);
    schedule.variants[static_cast<std::size_t>(other)] = (*first + 1) % plan.variants();
  }
  return schedule;
}

}  // namespace slotgraph::fuzz

// Any variant may meet any other: the plan makes arenas independent of the assignment of variants
// to microbatches.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "properties/testing.h"

namespace slotgraph::properties {
namespace {

// All K^M vectors for small K and M.
void every_assignment_holds(const std::string& plan, int most) {
  fuzz::Case value = uniform_case(plan, "mlp", "fp32");
  value.steps = 1;
  const int variants = value.plan.variants();
  int cases = 0;
  for (const int count : value.plan.covered_counts) {
    if (count > most) continue;
    int vectors = 1;
    for (int i = 0; i < count; ++i) vectors *= variants;
    for (int number = 0; number < vectors; ++number) {
      value.schedule.variants.clear();
      for (int i = 0, rest = number; i < count; ++i, rest /= variants)
        value.schedule.variants.push_back(rest % variants);
      ++cases;
      ASSERT_EQ(outcome(value), "holds")
          << plan << " " << fmt::format("{}", number) << " of " << count;
    }
  }
  fmt::print("{}: {} assignments\n", plan, cases);
}

TEST(MicrobatchOrder, EveryAssignmentOfTwoVariantsHoldsOnOneStage) {
  every_assignment_holds("p2-l2-k2.r0", 5);
}
TEST(MicrobatchOrder, EveryAssignmentOfTwoVariantsHoldsOnVirtualStages) {
  every_assignment_holds("p2v2n2-l1-k2.r0", 4);
}
TEST(MicrobatchOrder, EveryAssignmentOfThreeVariantsHolds) {
  every_assignment_holds("p2v3n2-l2-k3-long.r1", 2);
}

// The adversarial device order respects streams only: no seed may matter to a correct runtime.
TEST(MicrobatchOrder, NoOrderOfQueuedWorkMatters) {
  fuzz::Case value = uniform_case("p2v2n2-l1-k2.r0", "dropout", "fp32");
  value.steps = 1;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    value.order_seed = seed;
    value.addresses = seed % 3 == 0 ? "ascending" : seed % 3 == 1 ? "descending" : "seeded";
    ASSERT_EQ(outcome(value), "holds") << seed;
  }
}

}  // namespace
}  // namespace slotgraph::properties

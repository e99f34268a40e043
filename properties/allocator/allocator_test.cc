// The real caching allocator against its model, on random programs of two threads and two devices.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>

#include "properties/allocator/commands.h"

namespace slotgraph::allocator {
namespace {

// RapidCheck reads its parameters from the environment: without others, every run tests the same
// programs.
const bool kFixed = setenv("RC_PARAMS", "seed=2026 max_success=800 max_size=200", 0) == 0;

void check(Model::Recorded recorded) {
  static const bool ready = (initialise_two_devices(), true);
  RC_ASSERT(ready && kFixed);
  Real real;
  rc::state::check(Model(real.bases(), recorded), real, &command);
}

RC_GTEST_PROP(Allocator, DoesWhatItsModelPredicts, ()) { check(Model::Recorded::kDieInside); }

// After the other: what these programs leave behind in the allocator would disturb it.
RC_GTEST_PROP(Allocator, DoesSoWithTensorsThatOutliveTheirScope, ()) {
  check(Model::Recorded::kDieAnywhere);
}

// Says what the programs were made of, and that they reached everything that matters.
TEST(Allocator, ProgramsReachEverySituation) {
  for (const auto& [name, count] : census().commands) fmt::print("{:>8}  {}\n", count, name);
  fmt::print("\n");
  for (const auto& [name, count] : census().situations) fmt::print("{:>8}  {}\n", count, name);
  EXPECT_EQ(census().commands.size(), 18u);
  for (const auto& [name, count] : census().situations) EXPECT_GE(count, 10u) << name;
}

}  // namespace
}  // namespace slotgraph::allocator

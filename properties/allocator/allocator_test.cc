// The real caching allocator against its model, on random programs of two threads and two devices.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "properties/allocator/commands.h"

namespace slotgraph::allocator {
namespace {

RC_GTEST_PROP(Allocator, DoesWhatItsModelPredicts, ()) {
  static const bool ready = (initialise_two_devices(), true);
  (void)ready;
  Real real;
  rc::state::check(Model(real.bases()), real, &command);
}

// Says what the programs were made of, and that they reached everything that matters.
TEST(Allocator, ProgramsReachEverySituation) {
  for (const auto& [name, count] : census().commands) fmt::print("{:>8}  {}\n", count, name);
  fmt::print("\n");
  for (const auto& [name, count] : census().situations) fmt::print("{:>8}  {}\n", count, name);
  EXPECT_EQ(census().commands.size(), 15u);
  for (const auto& [name, count] : census().situations) EXPECT_GT(count, 20u) << name;
}

}  // namespace
}  // namespace slotgraph::allocator

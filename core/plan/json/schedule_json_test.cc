#include "core/plan/json/schedule_json.h"

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "core/order/microbatch_counts.h"

namespace slotgraph {
namespace {

CpLimits unaligned(CpLimits limits) {
  limits.microbatch_group_size = 0;
  return limits;
}

TEST(PublicSchedules, AreReproducedGroupByGroup) {
  const auto schedules = read_public_schedules("core/order/testdata/schedules.jsonl");
  EXPECT_EQ(schedules.size(), 200u);
  int aligned = 0;
  for (const PublicSchedule& expected : schedules) {
    check_schedule(expected.limits, expected.lengths, expected.schedule);
    EXPECT_EQ(greedy_schedule(expected.limits, expected.lengths), expected.schedule)
        << expected.name;
    EXPECT_EQ(greedy_schedule(unaligned(expected.limits), expected.lengths),
              expected.before_alignment)
        << expected.name;
    aligned += expected.before_alignment != expected.schedule;
  }
  EXPECT_GT(aligned, 20);
}

TEST(PublicSchedules, RefusalsAreReproduced) {
  const auto refusals = read_public_schedules("core/order/testdata/refused.jsonl");
  EXPECT_EQ(refusals.size(), 51u);
  for (const PublicSchedule& expected : refusals) {
    EXPECT_TRUE(expected.refused);
    EXPECT_EQ(greedy_schedule(unaligned(expected.limits), expected.lengths),
              expected.before_alignment)
        << expected.name;
    try {
      greedy_schedule(expected.limits, expected.lengths);
      ADD_FAILURE() << expected.name << " was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.rule(), "DC3") << expected.name;
    }
  }
}

TEST(PublicSchedules, BoundsAreReproducedAndHold) {
  for (const char* file : {"schedules", "refused"}) {
    for (const PublicSchedule& expected :
         read_public_schedules(std::string("core/order/testdata/") + file + ".jsonl")) {
      const CpLimits& limits = expected.limits;
      EXPECT_EQ(most_microbatches(BatchBound{static_cast<std::int64_t>(expected.lengths.size()),
                                             limits.ranks, limits.cap, limits.min_cp,
                                             expected.max_length, limits.microbatch_group_size}),
                expected.bound)
          << expected.name;
      EXPECT_LE(static_cast<std::int64_t>(expected.schedule.size()), expected.bound);
    }
  }
}

}  // namespace
}  // namespace slotgraph

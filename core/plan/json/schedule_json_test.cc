#include "core/plan/json/schedule_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/order/balanced_cp.h"
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

// How far the greedy schedules are from the shortest critical path, and what balancing gains.
TEST(BalancedSchedule, IsNearerToTheBoundThanTheGreedyOne) {
  for (const double communication : {0.0, 100.0, 1000.0}) {
    const CpCost cost{communication};
    std::vector<double> greedy, balanced;
    int shorter = 0;
    for (const PublicSchedule& each :
         read_public_schedules("core/order/testdata/schedules.jsonl")) {
      const double bound = shortest_critical_path(each.limits, each.lengths, cost);
      const CpSchedule ours = balanced_schedule(each.limits, each.lengths, cost);
      check_schedule(each.limits, each.lengths, ours);
      EXPECT_LE(static_cast<std::int64_t>(ours.size()), each.bound) << each.name;
      greedy.push_back(critical_path(each.lengths, each.schedule, cost) / bound);
      balanced.push_back(critical_path(each.lengths, ours, cost) / bound);
      EXPECT_LE(balanced.back(), greedy.back()) << each.name;
      EXPECT_GE(balanced.back(), 1 - 1e-9) << each.name;
      shorter += balanced.back() < 0.999 * greedy.back();
    }
    std::sort(greedy.begin(), greedy.end());
    std::sort(balanced.begin(), balanced.end());
    const auto print = [](const char* name, const std::vector<double>& ratios) {
      fmt::print("  {} / bound: median {:.3f}, 90 % {:.3f}, worst {:.3f}\n", name, ratios[100],
                 ratios[180], ratios[199]);
    };
    fmt::print("communication {}: {} of 200 schedules become shorter\n", communication, shorter);
    print("greedy", greedy);
    print("balanced", balanced);
    if (communication > 0) continue;
    EXPECT_LT(balanced[180], 1.01);
    EXPECT_GT(shorter, 100);
  }
}

TEST(BalancedSchedule, AlignsWhatTheGreedyOneRefuses) {
  int aligned = 0;
  for (const PublicSchedule& each : read_public_schedules("core/order/testdata/refused.jsonl")) {
    try {
      const CpSchedule ours = balanced_schedule(each.limits, each.lengths, {});
      check_schedule(each.limits, each.lengths, ours);
      EXPECT_LE(static_cast<std::int64_t>(ours.size()), each.bound) << each.name;
      ++aligned;
    } catch (const Error& error) {
      EXPECT_EQ(error.rule(), "DC3") << each.name;
    }
  }
  EXPECT_EQ(aligned, 35) << "the other 16 have fewer sequences than microbatches are needed";
}

}  // namespace
}  // namespace slotgraph

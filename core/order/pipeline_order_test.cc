#include "core/order/pipeline_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/error.h"

namespace slotgraph {
namespace {

// Worked examples of planner.md 1.3.
TEST(TrainingOrder, EqualsTheWorkedExamples) {
  EXPECT_EQ(training_order({2, 0, 0, 0}, 4), (Order{1, 1, -1, 1, -1, 1, -1, -1}));
  EXPECT_EQ(training_order({2, 1, 0, 0}, 4), (Order{1, -1, 1, -1, 1, -1, 1, -1}));
  EXPECT_EQ(training_order({4, 0, 0, 0}, 6), (Order{1, 1, 1, 1, -1, 1, -1, 1, -1, -1, -1, -1}));
  EXPECT_EQ(training_order({2, 0, 2, 2}, 4),
            (Order{1, 1, 2, 2, 1, -2, 1, -2, 2, -1, 2, -1, -2, -2, -1, -1}));
  EXPECT_EQ(training_order({2, 1, 2, 2}, 4),
            (Order{1, 1, 2, -2, 2, -2, 1, -1, 1, -1, 2, -2, 2, -2, -1, -1}));
  EXPECT_EQ(training_order({2, 0, 2, 3}, 5),
            (Order{1, 1, 1, 2, 2, 2, -2, 1, -2, 1, -2, 2, -1, 2, -1, -1, -2, -2, -1, -1}));
}

TEST(TrainingOrder, RefusesWhatTheSchedulersRefuse) {
  const auto rule = [](PipelineShape shape, int microbatches) -> std::string {
    try {
      training_order(shape, microbatches);
    } catch (const Error& error) {
      return error.rule();
    }
    return "";
  };
  EXPECT_EQ(rule({0, 0, 0, 0}, 1), "O01");
  EXPECT_EQ(rule({2, 2, 0, 0}, 1), "O01");
  EXPECT_EQ(rule({1, 0, 2, 2}, 2), "O01");
  EXPECT_EQ(rule({2, 0, 0, 0}, 0), "O01");
  EXPECT_EQ(rule({4, 0, 2, 2}, 8), "O02") << "N < P";
  EXPECT_EQ(rule({2, 0, 2, 4}, 2), "O02") << "M < N";
  EXPECT_EQ(rule({3, 0, 2, 4}, 6), "O02") << "short last group starves the pipe";
  EXPECT_EQ(rule({2, 0, 2, 4}, 6), "");
}

// Invariants O1-O6, O11 of planner.md 1.4 for every legal shape up to P 5, V 4, N 6, M 12.
TEST(TrainingOrder, HoldsItsInvariantsForEverySmallShape) {
  int shapes = 0;
  for (int p = 1; p <= 5; ++p)
    for (int r = 0; r < p; ++r)
      for (int v = 0; v <= (p == 1 ? 0 : 4); ++v)
        for (int n = v == 0 ? 0 : p; n <= (v == 0 ? 0 : 6); ++n)
          for (int m = 1; m <= 12; ++m) {
            if (v > 0 && (m < n || (m % n != 0 && m % n < p))) continue;
            const PipelineShape shape{p, r, v, n};
            const Order order = training_order(shape, m);
            ++shapes;
            ASSERT_EQ(order.size(), 2u * m * shape.chunks());
            EXPECT_EQ(order.front(), 1);
            EXPECT_EQ(order.back(), -1);
            std::map<int, int> count;
            int live = 0, previous = 0;
            bool steady = false;
            for (const int entry : order) {
              ++count[entry];
              live += entry > 0 ? 1 : -1;
              ASSERT_GE(count[std::abs(entry)], count[-std::abs(entry)])
                  << "backward before its forward";
              ASSERT_GE(live, 0);
              if (previous < 0 && entry > 0) steady = true;
              ASSERT_FALSE(steady && previous > 0 && entry > 0) << "one forward, one backward";
              previous = entry;
            }
            for (int c = 1; c <= shape.chunks(); ++c) {
              EXPECT_EQ(count[c], m);
              EXPECT_EQ(count[-c], m);
            }
          }
  EXPECT_GT(shapes, 800);
}

}  // namespace
}  // namespace slotgraph

#include "core/order/pipeline_order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "core/order/entries.h"
#include "core/testing/rule.h"

namespace slotgraph {
namespace {

using testing::rule;

// Orders of small shapes, written out.
TEST(TrainingOrder, EqualsTheWorkedExamples) {
  EXPECT_EQ(training_order({2, 0, 0, 0}, 4), (Order{1, 1, -1, 1, -1, 1, -1, -1}));
  EXPECT_EQ(training_order({2, 1, 0, 0}, 4), (Order{1, -1, 1, -1, 1, -1, 1, -1}));
  EXPECT_EQ(training_order({4, 0, 0, 0}, 6), (Order{1, 1, 1, 1, -1, 1, -1, 1, -1, -1, -1, -1}));
  EXPECT_EQ(training_order({4, 2, 0, 0}, 6), (Order{1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, -1}));
  EXPECT_EQ(training_order({2, 0, 2, 2}, 4),
            (Order{1, 1, 2, 2, 1, -2, 1, -2, 2, -1, 2, -1, -2, -2, -1, -1}));
  EXPECT_EQ(training_order({2, 1, 2, 2}, 4),
            (Order{1, 1, 2, -2, 2, -2, 1, -1, 1, -1, 2, -2, 2, -2, -1, -1}));
  EXPECT_EQ(training_order({2, 0, 2, 3}, 5),
            (Order{1, 1, 1, 2, 2, 2, -2, 1, -2, 1, -2, 2, -1, 2, -1, -1, -2, -2, -1, -1}));
  EXPECT_EQ(training_order({4, 2, 4, 4}, 4),
            (Order{1, 1,  1,  1,  2,  2,  2,  2,  3,  3,  3,  3,  4,  4,  4,  -4,
                   4, -4, -4, -4, -3, -3, -3, -3, -2, -2, -2, -2, -1, -1, -1, -1}));
}

TEST(TrainingOrder, RefusesWhatTheSchedulersRefuse) {
  const auto refused = [](PipelineShape shape, int microbatches) {
    const std::string found = rule([&] { training_order(shape, microbatches); });
    EXPECT_EQ(found.empty(), is_legal(shape, microbatches));
    return found;
  };
  EXPECT_EQ(refused({0, 0, 0, 0}, 1), "OP1");
  EXPECT_EQ(refused({2, 2, 0, 0}, 1), "OP1");
  EXPECT_EQ(refused({2, -1, 0, 0}, 1), "OP1");
  EXPECT_EQ(refused({2, 0, -1, 0}, 1), "OP1");
  EXPECT_EQ(refused({1, 0, 2, 2}, 2), "OP1");
  EXPECT_EQ(refused({2, 0, 2, 0}, 2), "OP1");
  EXPECT_EQ(refused({2, 0, 0, 0}, 0), "OP1");
  EXPECT_EQ(refused({4, 0, 2, 2}, 8), "OP2") << "N < P";
  EXPECT_EQ(refused({2, 0, 2, 4}, 2), "OP2") << "M < N";
  EXPECT_EQ(refused({3, 0, 2, 4}, 6), "OP2") << "short last group starves the pipe";
  EXPECT_EQ(refused({2, 0, 2, 4}, 6), "");
}

// Microbatch and chunk of every virtual microbatch, found by division, without the code under test.
// Groups of microbatches come one after another; in a group, chunk by chunk, each microbatch.
std::vector<std::pair<int, int>> table_of(const PipelineShape& shape, int m) {
  const int group = shape.virtual_stages == 0 ? m : shape.microbatch_group_size;
  std::vector<std::pair<int, int>> table;
  for (int i = 0; i < m * shape.chunks(); ++i) {
    const int cut = i / (group * shape.chunks());
    const int width = std::min(group, m - cut * group);
    const int rest = i - cut * group * shape.chunks();
    table.emplace_back(cut * group + rest % width, rest / width);
  }
  return table;
}

// Most microbatches of each chunk in flight, for counts that are multiples of the group.
std::vector<int> closed_form(const PipelineShape& shape, int m) {
  const int n = shape.virtual_stages == 0 ? 1 : shape.microbatch_group_size, v = shape.chunks();
  const int distance = shape.pipeline_size - shape.rank - 1;
  if (shape.pipeline_size == 1) return {1};
  if (shape.virtual_stages == 0) return {std::min(distance + 1, m)};
  std::vector<int> result(v);
  for (int c = 0; c < v; ++c) {
    const int forwards = std::min((2 * v - 2 - c) * n + 2 * distance + 1, m * v);
    for (int g = 0; g < m / n; ++g) result[c] += std::clamp(forwards - g * v * n - c * n, 0, n);
  }
  return result;
}

// What every order holds, whatever the legal shape and count.
void expect_invariants(const PipelineShape& shape, int m) {
  const Order order = training_order(shape, m);
  const int v = shape.chunks(), total = m * v;
  const auto table = table_of(shape, m);
  SCOPED_TRACE(fmt::format("P {} rank {} V {} N {} M {}", shape.pipeline_size, shape.rank,
                           shape.virtual_stages, shape.microbatch_group_size, m));
  ASSERT_EQ(static_cast<int>(order.size()), 2 * total);
  ASSERT_EQ(rule([&] { check_order(order, v); }), "");
  ASSERT_EQ(*std::max_element(order.begin(), order.end()), v);
  ASSERT_EQ(std::accumulate(order.begin(), order.end(), 0), 0);
  int sum = 0, live = 0, most_live = 0, forward = 0, backward = 0;
  const int w = warm_up_forwards(shape, total);
  for (std::size_t i = 0; i < order.size(); ++i) {
    ASSERT_GE(sum += order[i], 0);
    live += order[i] > 0 ? 1 : -1;
    most_live = std::max(most_live, live);
    // Forwards follow the table, backwards its mirror; no rank changes it.
    if (order[i] > 0) {
      ASSERT_EQ(order[i], table[forward++].second + 1);
    } else {
      ASSERT_EQ(-order[i], v - table[backward++].second);
    }
    // One forward, one backward, between warm-up and the last forward.
    const int at = static_cast<int>(i);
    const bool forwards_only = at < w, backwards_only = at >= 2 * total - w;
    ASSERT_EQ(order[i] > 0, forwards_only || (!backwards_only && (at - w) % 2 == 0));
  }
  ASSERT_EQ(most_live, std::min(w + 1, total));
  ASSERT_EQ(order.front(), 1);
  ASSERT_EQ(order.back(), -1);
  if (shape.virtual_stages == 0 || m % shape.microbatch_group_size == 0) {
    ASSERT_EQ(peak_outstanding(order, v), closed_form(shape, m));
  }
}

// Exhausted: P <= 6, every rank, V <= 4, P <= N <= P + 4, M <= 20.
TEST(TrainingOrder, HoldsItsInvariantsForEverySmallShape) {
  int shapes = 0;
  for (int p = 1; p <= 6; ++p)
    for (int r = 0; r < p; ++r)
      for (int v = 0; v <= (p == 1 ? 0 : 4); ++v)
        for (int n = v == 0 ? 0 : p; n <= (v == 0 ? 0 : p + 4); ++n)
          for (int m = 1; m <= 20; ++m) {
            const PipelineShape shape{p, r, v, n};
            if (!is_legal(shape, m)) continue;
            ++shapes;
            ASSERT_NO_FATAL_FAILURE(expect_invariants(shape, m));
          }
  EXPECT_EQ(shapes, 3020);
}

// The longest ring is rank 0's, and has a closed form from two groups on.
TEST(PeakOutstanding, IsLargestOnRankZeroAndHasAClosedForm) {
  for (int p = 2; p <= 8; ++p)
    for (int v = 0; v <= 4; ++v)
      for (int n = v == 0 ? 1 : p; n <= (v == 0 ? 1 : 2 * p + 2); ++n) {
        std::vector<int> ring(p);
        const int m = v == 0 ? 2 * p : 2 * n;
        for (int r = 0; r < p; ++r) {
          const PipelineShape shape{p, r, v, n};
          const auto peaks = peak_outstanding(training_order(shape, m), shape.chunks());
          ring[r] = *std::max_element(peaks.begin(), peaks.end());
        }
        EXPECT_EQ(*std::max_element(ring.begin(), ring.end()), ring[0]);
        const int expected = v == 0   ? p
                             : v == 1 ? std::min(2 * p - 1, m)
                             : v == 2 ? n + std::min(n, 2 * p - 1)
                                      : 2 * n;
        EXPECT_EQ(ring[0], expected) << p << " " << v << " " << n;
      }
  EXPECT_EQ(peak_outstanding(training_order({4, 2, 4, 4}, 32), 4), (std::vector{8, 7, 4, 3}));
  EXPECT_EQ(peak_outstanding(training_order({8, 7, 4, 8}, 64), 4), (std::vector{16, 9, 8, 1}));
}

TEST(CaptureOrder, IsTheTrainingOrderWhereThatExistsAndDrainsElsewhere) {
  EXPECT_EQ(capture_order({2, 0, 2, 4}, 8), training_order({2, 0, 2, 4}, 8));
  EXPECT_EQ(rule([] { check_order(capture_order({4, 0, 2, 8}, 3), 2); }), "");
}

TEST(CheckOrder, NamesTheFirstBrokenRule) {
  const auto broken = [](const Order& order, int chunks) {
    return rule([&] { check_order(order, chunks); });
  };
  EXPECT_EQ(broken({1, 2, -2, -1}, 2), "");
  EXPECT_EQ(broken({}, 1), "OR1");
  EXPECT_EQ(broken({1, -1}, 0), "OR1");
  EXPECT_EQ(broken({1, -1, 1}, 1), "OR1");
  EXPECT_EQ(broken({1, 0}, 1), "OR1");
  EXPECT_EQ(broken({1, -2}, 1), "OR1");
  EXPECT_EQ(broken({1, 1, -1, -1}, 2), "OR1") << "chunk 2 never";
  EXPECT_EQ(broken({1, 1, 2, -2, -2, -1}, 2), "OR1");
  EXPECT_EQ(broken({-1, 1}, 1), "OR2");
  EXPECT_EQ(broken({1, -1, -1, 1}, 1), "OR2");
}

TEST(Events, CountMicrobatchesPerChunkAndDirection) {
  EXPECT_EQ(
      events({1, 2, 1, -2, -1, -1}),
      (std::vector<OrderEvent>{
          {true, 0, 0}, {true, 1, 0}, {true, 0, 1}, {false, 1, 0}, {false, 0, 0}, {false, 0, 1}}));
}

TEST(Entries, AreEventsOrDelayedWeightGradientsOrNothing) {
  for (const double entry : {1.0, -1.0, 7.0, -7.0}) {
    EXPECT_TRUE(is_event(entry)) << entry;
    EXPECT_FALSE(is_delayed_weight_gradient(entry)) << entry;
  }
  EXPECT_TRUE(is_delayed_weight_gradient(-1.5));
  EXPECT_FALSE(is_event(-1.5));
  for (const double entry : {0.0, 0.5, 1.5, -0.5, -1.25, 1e12, std::nan("")}) {
    EXPECT_FALSE(is_event(entry)) << entry;
    EXPECT_FALSE(is_delayed_weight_gradient(entry)) << entry;
  }
}

}  // namespace
}  // namespace slotgraph

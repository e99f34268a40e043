#include "core/order/branch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/testing/rule.h"

namespace slotgraph {
namespace {

using testing::rule;

constexpr auto kLockstep = BranchArrangement::kLockstep;
constexpr auto kVariantMajor = BranchArrangement::kVariantMajor;

// What the public planner makes of these orders.
TEST(BranchOrder, EqualsThePinnedExamples) {
  const Order two{1, 2, 1, 2, -1, -2, -1, -2}, nested{1, 2, -2, -1}, one{1, -1};
  EXPECT_EQ(branch_order(two, 2, 2, 0, kLockstep),
            (Order{1, 3, 2, 4, 1, 3, 2, 4, -1, -3, -2, -4, -1, -3, -2, -4}));
  EXPECT_EQ(branch_order(nested, 2, 4, 3, kLockstep),
            (Order{7, 1, 3, 5, 8, 2, 4, 6, -8, -2, -4, -6, -7, -1, -3, -5}));
  EXPECT_EQ(branch_order(one, 1, 3, canonical_variant(3), kLockstep), (Order{3, 1, 2, -3, -1, -2}));
  EXPECT_EQ(branch_order(one, 1, 3, 2, kVariantMajor), (Order{3, -3, 1, -1, 2, -2}));
  EXPECT_EQ(branch_order(two, 2, 2, 0, kVariantMajor),
            (Order{1, 2, 1, 2, -1, -2, -1, -2, 3, 4, 3, 4, -3, -4, -3, -4}));
  EXPECT_EQ(branch_order(nested, 2, 4, 3, kVariantMajor),
            (Order{7, 8, -8, -7, 1, 2, -2, -1, 3, 4, -4, -3, 5, 6, -6, -5}));
}

// Every variant's entries, mapped back, are the base order, and the whole is an order of K * V
// chunks. Exhausted: the orders of P <= 4, V <= 3, M <= 8, K <= 4, every canonical variant.
TEST(BranchOrder, HoldsTheBaseOrderOfEveryVariant) {
  int orders = 0;
  for (int p = 1; p <= 4; ++p)
    for (int v = 0; v <= (p == 1 ? 0 : 3); ++v)
      for (int m = 1; m <= 8; ++m)
        for (int k = 1; k <= 4; ++k)
          for (int canonical = 0; canonical < k; ++canonical)
            for (const auto arrangement : {kLockstep, kVariantMajor}) {
              const PipelineShape shape{p, 0, v, p};
              if (!is_legal(shape, m)) continue;
              const int chunks = shape.chunks();
              const Order base = training_order(shape, m);
              const Order all = branch_order(base, chunks, k, canonical, arrangement);
              check_order(all, chunks * k);
              EXPECT_EQ((all.front() - 1) / chunks, canonical);
              for (int variant = 0; variant < k; ++variant) {
                Order mine;
                for (const int entry : all) {
                  const int number = std::abs(entry) - 1;
                  if (number / chunks == variant)
                    mine.push_back((number % chunks + 1) * (entry > 0 ? 1 : -1));
                }
                ASSERT_EQ(mine, base);
              }
              ++orders;
            }
  EXPECT_GT(orders, 900);
}

TEST(BranchOrder, RefusesVariantsOutOfRange) {
  EXPECT_EQ(rule([] { branch_order({1, -1}, 1, 0, 0, kLockstep); }), "OB2");
  EXPECT_EQ(rule([] { branch_order({1, -1}, 1, 2, 2, kLockstep); }), "OB2");
  EXPECT_EQ(rule([] { branch_order({1, -1}, 1, 2, -1, kLockstep); }), "OB2");
  EXPECT_EQ(rule([] { branch_order({-1, 1}, 1, 2, 0, kLockstep); }), "OR2");
}

TEST(CpSizes, AreDescendingPowersOfTwo) {
  EXPECT_EQ(cp_sizes(8, 1), (std::vector{8, 4, 2, 1}));
  EXPECT_EQ(cp_sizes(4, 4), (std::vector{4}));
  for (const auto& sizes : {std::pair{6, 1}, {8, 3}, {2, 4}, {0, 0}, {-4, -4}}) {
    EXPECT_EQ(rule([&] { cp_sizes(sizes.first, sizes.second); }), "OB1")
        << sizes.first << " " << sizes.second;
  }
}

}  // namespace
}  // namespace slotgraph

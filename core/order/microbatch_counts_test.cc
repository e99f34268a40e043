#include "core/order/microbatch_counts.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/testing/rule.h"

namespace slotgraph {
namespace {

using testing::rule;

// The sets that the public planner's tests expect.
TEST(AlignedCounts, EqualThePinnedSets) {
  EXPECT_EQ(aligned_counts({2, 0, 0, 0}, 4), (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(aligned_counts({4, 0, 2, 4}, 8), (std::vector{4, 8}));
  EXPECT_EQ(aligned_counts({8, 0, 2, 8}, 16), (std::vector{8, 16}));
  EXPECT_EQ(aligned_counts({1, 0, 0, 0}, 16), (std::vector{1}));
  EXPECT_EQ(rule([] { aligned_counts({4, 0, 2, 4}, 10); }), "OC1");
  EXPECT_EQ(rule([] { aligned_counts({4, 0, 2, 4}, 0); }), "OC1");
  EXPECT_EQ(rule([] { aligned_counts({2, 0, 0, 0}, 0); }), "OC1");
  EXPECT_EQ(rule([] { aligned_counts({2, 7, 0, 0}, 4); }), "OP1");
}

TEST(LegalCounts, HoldTheAlignedOnesAndTheShortLastGroupsThatFeedThePipe) {
  EXPECT_EQ(legal_counts({2, 0, 2, 3}, 9), (std::vector{3, 5, 6, 8, 9}));
  EXPECT_EQ(legal_counts({3, 0, 0, 0}, 3), (std::vector{1, 2, 3}));
}

TEST(MostMicrobatches, EqualsThePinnedBoundsOfTheDynamicScheduler) {
  const auto bound = [](std::int64_t samples, std::int64_t longest, int group) {
    return most_microbatches(BatchBound{samples, 8, 8192, 1, longest, group});
  };
  EXPECT_EQ(bound(64, 8192, 4), 8);
  EXPECT_EQ(bound(64, 16384, 4), 16);
  EXPECT_EQ(bound(64, 65536, 4), 64);
  EXPECT_EQ(bound(128, 8192, 4), 16);
  EXPECT_EQ(bound(9, 8192, 8), 8);
  EXPECT_EQ(bound(9, 8192, 0), 2);
  EXPECT_EQ(most_microbatches(BatchBound{64, 8, 8192, 2, 8192, 4}), 16) << "min_cp counts";
  EXPECT_EQ(most_microbatches(BatchBound{64, 8, 8192, 1, 12000, 4}), 16) << "rounded to 2 ranks";
  EXPECT_EQ(rule([] { most_microbatches(BatchBound{0, 8, 8192, 1, 8192, 4}); }), "OC2");
}

TEST(MostMicrobatches, EqualsThePinnedBoundsOfPacking) {
  EXPECT_EQ(most_microbatches(PackingBound{64, 1, 1, 4096, 4096, 0, 0}), 64);
  EXPECT_EQ(most_microbatches(PackingBound{64, 1, 2, 4096, 4096, 0, 0}), 32);
  EXPECT_EQ(most_microbatches(PackingBound{8, 1, 1, 4096, 4096, 0, 0}), 8);
  EXPECT_EQ(most_microbatches(PackingBound{18, 1, 1, 4096, 2048, 0, 8}), 16);
  EXPECT_EQ(most_microbatches(PackingBound{18, 2, 1, 4096, 512, 3, 0}), 3) << "at most 3 a pack";
}

TEST(NeededCp, IsAPowerOfTwoThatHoldsTheSample) {
  EXPECT_EQ(needed_cp(1, 4096, 1), 1);
  EXPECT_EQ(needed_cp(4096, 4096, 1), 1);
  EXPECT_EQ(needed_cp(4097, 4096, 1), 2);
  EXPECT_EQ(needed_cp(8193, 4096, 1), 4) << "not 3";
  EXPECT_EQ(needed_cp(1, 4096, 4), 4);
}

}  // namespace
}  // namespace slotgraph

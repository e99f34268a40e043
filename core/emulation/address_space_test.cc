#include "core/emulation/address_space.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace slotgraph::emulation {
namespace {

constexpr std::uintptr_t kBase = std::uintptr_t{1} << 40;
constexpr std::size_t kGranule = AddressSpace::kGranule;
constexpr std::size_t kChunk = AddressSpace::kChunk;
constexpr std::size_t kGranules = 64;  // four chunks
constexpr std::size_t kSize = kGranules * kGranule;

constexpr AddressPolicy kPolicies[] = {AddressPolicy::kAscending, AddressPolicy::kDescendingChunks,
                                       AddressPolicy::kSeeded};

class Space {
 public:
  explicit Space(AddressPolicy policy, std::uint64_t seed = 1) : policy_(policy), random_(seed) {}
  std::optional<std::uintptr_t> take(std::size_t size) {
    return space_.take(size, policy_, random_);
  }
  void give_back(std::uintptr_t address, std::size_t size) { space_.give_back(address, size); }

 private:
  AddressSpace space_{kBase, kSize};
  AddressPolicy policy_;
  Random random_;
};

TEST(AddressSpace, AscendingIsTheLowestPlaceThatFits) {
  Space space(AddressPolicy::kAscending);
  EXPECT_EQ(space.take(kGranule), kBase);
  EXPECT_EQ(space.take(3 * kGranule), kBase + kGranule);
  EXPECT_EQ(space.take(kGranule), kBase + 4 * kGranule);
  space.give_back(kBase + kGranule, 3 * kGranule);
  EXPECT_EQ(space.take(4 * kGranule), kBase + 5 * kGranule);
  EXPECT_EQ(space.take(kGranule), kBase + kGranule);
}

TEST(AddressSpace, DescendingGoesUpInsideTheHighestChunk) {
  Space space(AddressPolicy::kDescendingChunks);
  const std::uintptr_t top = kBase + kSize - kChunk;
  EXPECT_EQ(space.take(10 * kGranule), top);
  EXPECT_EQ(space.take(6 * kGranule), top + 10 * kGranule);
  EXPECT_EQ(space.take(kGranule), top - kChunk);
}

TEST(AddressSpace, DescendingLongRequestsEndAtTheTop) {
  Space space(AddressPolicy::kDescendingChunks);
  EXPECT_EQ(space.take(kChunk + kGranule), kBase + kSize - kChunk - kGranule);
  EXPECT_EQ(space.take(kChunk), kBase + kSize - 2 * kChunk - kGranule);
}

TEST(AddressSpace, DescendingTakesAPlaceAcrossChunksRatherThanNone) {
  Space space(AddressPolicy::kDescendingChunks);
  for (std::size_t i = 0; i < kGranules; ++i) EXPECT_TRUE(space.take(kGranule));
  space.give_back(kBase + kChunk - kGranule, 2 * kGranule);
  EXPECT_EQ(space.take(2 * kGranule), kBase + kChunk - kGranule);
}

TEST(AddressSpace, FullGivesNothingUntilSomethingComesBack) {
  for (AddressPolicy policy : kPolicies) {
    Space space(policy);
    EXPECT_EQ(space.take(kSize + kGranule), std::nullopt);
    EXPECT_EQ(space.take(kSize), kBase);
    EXPECT_EQ(space.take(kGranule), std::nullopt);
    space.give_back(kBase, kSize);
    EXPECT_EQ(space.take(kSize), kBase);
  }
}

TEST(AddressSpace, NeighboursMergeInWhateverOrderTheyComeBack) {
  constexpr std::size_t quarter = kSize / 4;
  std::vector<std::uintptr_t> parts{0, 1, 2, 3};
  do {
    Space space(AddressPolicy::kAscending);
    EXPECT_TRUE(space.take(kSize));
    for (std::uintptr_t part : parts) space.give_back(kBase + part * quarter, quarter);
    EXPECT_EQ(space.take(kSize), kBase);
  } while (std::next_permutation(parts.begin(), parts.end()));
}

// A model of one space: which granules are in use.
class Model {
 public:
  explicit Model(AddressPolicy policy, std::uint64_t seed) : space_(policy, seed) {}

  bool fits(std::size_t at, std::size_t count) const {
    return at + count <= kGranules && std::none_of(used_.begin() + static_cast<long>(at),
                                                   used_.begin() + static_cast<long>(at + count),
                                                   [](bool used) { return used; });
  }
  std::optional<std::size_t> lowest(std::size_t count) const {
    for (std::size_t at = 0; at < kGranules; ++at) {
      if (fits(at, count)) return at;
    }
    return std::nullopt;
  }
  // Takes `count` granules and checks the place. Returns it.
  std::optional<std::size_t> take(std::size_t count) {
    const auto expected = lowest(count);
    const auto address = space_.take(count * kGranule);
    RC_ASSERT(address.has_value() == expected.has_value());
    if (!address) return std::nullopt;
    RC_ASSERT(*address >= kBase);
    RC_ASSERT((*address - kBase) % kGranule == 0u);
    const std::size_t at = (*address - kBase) / kGranule;
    RC_ASSERT(fits(at, count));
    std::fill_n(used_.begin() + static_cast<long>(at), count, true);
    live_[at] = count;
    return at;
  }
  void give_back(std::size_t index) {
    const auto it = std::next(live_.begin(), static_cast<long>(index % live_.size()));
    space_.give_back(kBase + it->first * kGranule, it->second * kGranule);
    std::fill_n(used_.begin() + static_cast<long>(it->first), it->second, false);
    live_.erase(it);
  }
  bool empty() const { return live_.empty(); }

 private:
  Space space_;
  std::vector<bool> used_ = std::vector<bool>(kGranules);
  std::map<std::size_t, std::size_t> live_;
};

// Positive numbers take so many granules, the others give a live range back.
using Operations = std::vector<int>;
Operations operations() { return *rc::gen::container<Operations>(rc::gen::inRange(-24, 25)); }

RC_GTEST_PROP(AddressSpaceProperty, NeverOverlapsAndFindsEveryPlaceThatFits, ()) {
  const auto policy = *rc::gen::elementOf(std::vector(std::begin(kPolicies), std::end(kPolicies)));
  Model model(policy, *rc::gen::arbitrary<std::uint64_t>());
  for (int operation : operations()) {
    if (operation > 0) {
      model.take(static_cast<std::size_t>(operation));
    } else if (!model.empty()) {
      model.give_back(static_cast<std::size_t>(-operation));
    }
  }
  while (!model.empty()) model.give_back(0);
  RC_ASSERT(model.take(kGranules) == std::size_t{0});
}

RC_GTEST_PROP(AddressSpaceProperty, AscendingIsTheLowest, ()) {
  Model model(AddressPolicy::kAscending, 1);
  for (int operation : operations()) {
    if (operation > 0) {
      const auto expected = model.lowest(static_cast<std::size_t>(operation));
      RC_ASSERT(model.take(static_cast<std::size_t>(operation)) == expected);
    } else if (!model.empty()) {
      model.give_back(static_cast<std::size_t>(-operation));
    }
  }
}

// The policies that do not draw depend on the live ranges only: an excursion leaves no trace.
RC_GTEST_PROP(AddressSpaceProperty, WhatCameBackLeavesNoTrace, ()) {
  const bool ascending = *rc::gen::arbitrary<bool>();
  const auto policy = ascending ? AddressPolicy::kAscending : AddressPolicy::kDescendingChunks;
  Model straight(policy, 1), wandering(policy, 1);
  for (int operation : operations()) {
    if (operation <= 0) continue;
    const auto count = static_cast<std::size_t>(operation);
    Space unused(policy);
    RC_ASSERT(straight.take(count) == wandering.take(count));
    straight.give_back(count);
    wandering.give_back(count);
    RC_ASSERT(straight.take(1) == wandering.take(1));
  }
}

RC_GTEST_PROP(AddressSpaceProperty, SameSeedIsTheSamePlaces, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  Model first(AddressPolicy::kSeeded, seed), second(AddressPolicy::kSeeded, seed);
  for (int operation : operations()) {
    const auto count = static_cast<std::size_t>(std::abs(operation) + 1);
    RC_ASSERT(first.take(count) == second.take(count));
  }
}

}  // namespace
}  // namespace slotgraph::emulation

#include "core/layout/frame_layout.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace slotgraph {
namespace {

using Kind = Role::Kind;

TEST(Place, OrdersByRoleAndTakesTheMaximaOverTheVariants) {
  const FrameLayout layout = lay_out_frame(
      {{{{Kind::kRest, 0}, 100}, {{Kind::kOutput, 0}, 600}},
       {{{Kind::kOutput, 0}, 100}, {{Kind::kInput, 0}, 512}, {{Kind::kRest, 0}, 513}}});
  EXPECT_EQ(layout.offsets.at({Kind::kOutput, 0}), 0u);
  EXPECT_EQ(layout.offsets.at({Kind::kInput, 0}), 1024u) << "600 of the first variant, aligned";
  EXPECT_EQ(layout.offsets.at({Kind::kRest, 0}), 1536u);
  EXPECT_EQ(layout.bytes, 1536u + 1024u);
}

using Raw = std::vector<std::vector<std::tuple<int, int, int>>>;

std::vector<std::vector<Survivor>> survivors(const Raw& raw) {
  std::vector<std::vector<Survivor>> result;
  for (const auto& variant : raw) {
    std::map<Role, std::size_t> unique;
    for (const auto& [kind, position, bytes] : variant) {
      unique[{static_cast<Kind>(std::abs(kind) % 3), std::abs(position) % 4}] =
          1 + std::abs(bytes) % 5000;
    }
    result.emplace_back();
    for (const auto& [role, bytes] : unique) result.back().push_back({role, bytes});
  }
  return result;
}

RC_GTEST_PROP(Place, RegionsAreDisjointAlignedAndInsideTheArena, (const Raw& raw)) {
  const auto variants = survivors(raw);
  const FrameLayout layout = lay_out_frame(variants);
  for (const auto& variant : variants) {
    std::size_t end = 0;
    for (const Survivor& survivor : variant) {  // in role order
      const std::size_t offset = layout.offsets.at(survivor.role);
      RC_ASSERT(offset % kArenaAlignment == 0u);
      RC_ASSERT(offset >= end);
      end = offset + survivor.bytes;
    }
    RC_ASSERT(end <= layout.bytes);
  }
}

// The role at position i has one address in two variants whenever both have positions 0..i-1.
RC_GTEST_PROP(Place, OneVariantMoreMovesOnlyRolesBehindANewOrLargerOne, (const Raw& raw)) {
  auto variants = survivors(raw);
  RC_PRE(variants.size() >= 2u);
  const FrameLayout all = lay_out_frame(variants);
  const auto dropped = variants.back();
  variants.pop_back();
  const FrameLayout fewer = lay_out_frame(variants);
  for (const auto& place : fewer.offsets) {
    if (all.offsets.at(place.first) == place.second) continue;
    const bool grown = std::any_of(dropped.begin(), dropped.end(),
                                   [&](const Survivor& s) { return s.role < place.first; });
    RC_ASSERT(grown);
  }
}

}  // namespace
}  // namespace slotgraph

#include "core/graph/mode.h"

#include <gtest/gtest.h>

#include <set>

#include "core/error.h"

namespace slotgraph {
namespace {

TEST(Modes, EachHasOneRowAndItsNameFindsIt) {
  std::set<std::string> names;
  for (int i = 0; i < static_cast<int>(kModes.size()); ++i) {
    const auto mode = static_cast<Mode>(i);
    EXPECT_EQ(traits(mode).mode, mode);
    EXPECT_EQ(mode_from_name(to_string(mode)), mode);
    names.insert(to_string(mode));
    if (traits(mode).copies) EXPECT_TRUE(traits(mode).is_slot);
  }
  EXPECT_EQ(names.size(), kModes.size());
}

TEST(Modes, OtherNamesAreRefused) {
  for (const std::string name : {"", "Placement", "placement ", "fast"}) {
    try {
      (void)mode_from_name(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.rule(), "MO1");
      EXPECT_EQ(error.kind(), Error::kInput);
      EXPECT_NE(std::string(error.what()).find("checkpoint"), std::string::npos);
    }
  }
}

TEST(Modes, SlotModesShareByThePlan) {
  EXPECT_EQ(names_of(slot_modes()), (std::vector<std::string>{"placement", "arena", "checkpoint"}));
  EXPECT_EQ(names_of(graph_modes()),
            (std::vector<std::string>{"native", "placement", "arena", "checkpoint"}));
  EXPECT_FALSE(is_slot_mode(Mode::kPerVariant));
}

}  // namespace
}  // namespace slotgraph

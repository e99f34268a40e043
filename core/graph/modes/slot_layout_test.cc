#include "core/graph/modes/slot_layout.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "core/device/device.h"

namespace slotgraph {
namespace {

using Kind = Role::Kind;

// Inputs that share a storage share one place and keep their distance.
TEST(InputPlaces, AliasedInputsKeepTheirOffsets) {
  device::initialise();
  const auto floats = [](std::int64_t size) { return at::empty({size}, at::kCUDA); };
  const at::Tensor base = floats(10);
  const Inputs sample{{base.narrow(0, 4, 2), floats(3), base.narrow(0, 2, 3)}, {}};
  const InputPlaces places = input_places(sample);
  ASSERT_EQ(places.of_input.size(), 3u);
  EXPECT_EQ(places.of_input[0].role, (Role{Kind::kInput, 0}));
  EXPECT_EQ(places.of_input[0].offset, 8u);
  EXPECT_EQ(places.of_input[1].role, (Role{Kind::kInput, 1}));
  EXPECT_EQ(places.of_input[2].role, (Role{Kind::kInput, 0}));
  EXPECT_EQ(places.of_input[2].offset, 0u);
  ASSERT_EQ(places.survivors.size(), 2u);
  EXPECT_EQ(places.survivors[0].bytes, 16u) << "elements 2 to 5";
}

}  // namespace
}  // namespace slotgraph

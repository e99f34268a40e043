#include "core/memory/pool_topology.h"

#include <gtest/gtest.h>

#include "core/memory/checkpoint_fixture.h"

namespace slotgraph {
namespace {

using checkpoint_fixture::grew_only_free;

const void* at_address(std::size_t address) { return reinterpret_cast<const void*>(address); }

PoolTopology::Segment segment(std::size_t address, bool allocated, bool active) {
  return {at_address(address),
          1024,
          nullptr,
          {{at_address(address), 512, allocated, active},
           {at_address(address + 512), 512, false, false}}};
}

TEST(PoolTopology, BlocksAreLiveOrPendingOrFree) {
  const PoolTopology topology{
      {segment(0x1000, true, true), segment(0x2000, false, true), segment(0x3000, false, false)}};
  using Blocks = std::map<const void*, std::size_t>;
  EXPECT_EQ(topology.live(), (Blocks{{at_address(0x1000), 512}}));
  EXPECT_EQ(topology.pending(), (Blocks{{at_address(0x2000), 512}}));
  EXPECT_EQ(topology.reserved_bytes(), 3072u);
  EXPECT_FALSE(topology.segments[0].free());
  EXPECT_FALSE(topology.segments[1].free());
  EXPECT_TRUE(topology.segments[2].free());
}

TEST(PoolTopology, OnlyFreeSegmentsMayBeAdded) {
  const PoolTopology::Segment live = segment(0x2000, true, true);
  const PoolTopology::Segment pending = segment(0x1000, false, true);
  const PoolTopology::Segment free = segment(0x1000, false, false);
  EXPECT_TRUE(grew_only_free({{live}}, {{live}}));
  EXPECT_TRUE(grew_only_free({{live}}, {{free, live}}));
  EXPECT_FALSE(grew_only_free({{live}}, {{pending, live}}));
  EXPECT_FALSE(grew_only_free({{free}}, {{free, live}}));
  EXPECT_FALSE(grew_only_free({{free, live}}, {{live}})) << "a segment is gone";
  EXPECT_FALSE(grew_only_free({{live}}, {{segment(0x2000, false, false)}})) << "a block died";
}

TEST(PoolTopology, AKnownSegmentCountsEvenIfFree) {
  PoolTopology::Segment merged = segment(0x1000, false, false);
  merged.blocks = {{at_address(0x1000), 1024, false, false}};
  EXPECT_FALSE(grew_only_free({{segment(0x1000, false, false)}}, {{merged}}));
}

}  // namespace
}  // namespace slotgraph

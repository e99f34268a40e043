#include "core/memory/pool_topology.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>

namespace slotgraph {
namespace {

std::map<const void*, std::size_t> blocks_where(const PoolTopology& topology, auto predicate) {
  std::map<const void*, std::size_t> result;
  for (const PoolTopology::Segment& segment : topology.segments) {
    for (const PoolTopology::Block& block : segment.blocks)
      if (predicate(block)) result[block.address] = block.bytes;
  }
  return result;
}

}  // namespace

bool PoolTopology::Segment::free() const {
  return std::none_of(blocks.begin(), blocks.end(), [](const Block& b) { return b.active; });
}

std::size_t PoolTopology::reserved_bytes() const {
  std::size_t bytes = 0;
  for (const Segment& segment : segments) bytes += segment.bytes;
  return bytes;
}

std::map<const void*, std::size_t> PoolTopology::live() const {
  return blocks_where(*this, [](const Block& block) { return block.allocated; });
}

std::map<const void*, std::size_t> PoolTopology::pending() const {
  return blocks_where(*this, [](const Block& block) { return block.active && !block.allocated; });
}

PoolTopology topology_of(const PrivatePool& pool) {
  PoolTopology topology;
  const auto snapshot = c10::cuda::CUDACachingAllocator::get()->snapshot(pool.id(), false);
  for (const auto& info : snapshot.segments) {
    if (info.owner_private_pool_id != pool.id()) continue;
    PoolTopology::Segment segment{
        reinterpret_cast<const void*>(info.address), info.total_size, info.stream, {}};
    std::size_t address = info.address;
    for (const auto& block : info.blocks) {
      segment.blocks.push_back(
          {reinterpret_cast<const void*>(address), block.size, block.allocated, block.active});
      address += block.size;
    }
    topology.segments.push_back(std::move(segment));
  }
  std::sort(topology.segments.begin(), topology.segments.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  return topology;
}

}  // namespace slotgraph

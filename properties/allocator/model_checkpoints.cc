// The model's checkpoints.
#include <algorithm>
#include <utility>

#include "properties/allocator/model.h"

namespace slotgraph::allocator {

// Flushes deferred blocks even while a scope is open (Defects.ACheckpointInAScope...).
Reply Model::take_checkpoint(int device, int pool) {
  flush_deferred(devices_[device]);
  if (!devices_[device].use_counts.contains(pool)) return refused();
  Checkpoint checkpoint{device, pool, {}};
  for (const auto& [address, segment] : devices_[device].segments) {
    if (segment.pool != pool) continue;
    for (const Block& block : segment.blocks)
      if (block.state == Block::State::kWaiting) return refused();
    checkpoint.segments[address] = segment;
  }
  checkpoints_.push_back(std::move(checkpoint));
  return {};
}

Reply Model::restore(int number) {
  const Checkpoint& checkpoint = checkpoints_[number];
  Device& device = devices_[checkpoint.device];
  const auto pool = device.use_counts.find(checkpoint.pool);
  if (pool == device.use_counts.end() || pool->second == 0) return refused();
  Reply reply;
  for (auto& [start, segment] : device.segments) {
    if (segment.pool != checkpoint.pool) continue;
    Address address = start;
    std::size_t bytes = 0;
    for (Block& block : segment.blocks) {
      if (block.state == Block::State::kLive) {
        reply.freed.push_back(address);
        if (oversize(block.bytes)) --device.counters["oversize allocations"];
      }
      address += block.bytes;
      bytes += block.bytes;
    }
    segment.blocks = {{.bytes = bytes}};
  }
  for (const auto& [start, segment] : checkpoint.segments) {
    std::vector<Block>& blocks = device.segments.at(start).blocks;
    blocks.clear();
    Address address = start;
    for (const Block& block : segment.blocks) {
      // The size that was asked for is forgotten.
      blocks.push_back({.bytes = block.bytes, .requested = block.bytes, .state = block.state});
      ++device.counters["allocations"];
      if (block.state == Block::State::kLive) {
        reply.allocated.push_back(address);
        if (oversize(block.bytes)) ++device.counters["oversize allocations"];
      }
      address += block.bytes;
    }
  }
  for (const Address address : reply.freed) {
    if (std::binary_search(reply.allocated.begin(), reply.allocated.end(), address)) continue;
    note(Situation::kRestoredStale);
    dead_.push_back(address);
  }
  note(Situation::kRestored);
  return reply;
}

// A restore that fails half way leaves dangling entries (see //core/memory:rollback_test). So every
// recorded segment must be there, and it must be possible to free all blocks of the pool at once.
bool Model::may_restore(int number) const {
  const Checkpoint& checkpoint = checkpoints_[number];
  const Device& device = devices_[checkpoint.device];
  const auto pool = device.use_counts.find(checkpoint.pool);
  if (pool == device.use_counts.end() || pool->second == 0) return true;
  for (const auto& [address, segment] : device.segments) {
    if (segment.pool != checkpoint.pool) continue;
    for (const Block& block : segment.blocks) {
      const bool free = block.state == Block::State::kFree;
      if (!free && (block.state != Block::State::kLive || !block.uses.empty())) return false;
    }
  }
  return std::all_of(
      checkpoint.segments.begin(), checkpoint.segments.end(), [&](const auto& recorded) {
        const auto now = device.segments.find(recorded.first);
        const Segment& before = recorded.second;
        return now != device.segments.end() && now->second.pool == checkpoint.pool &&
               now->second.stream == before.stream && now->second.small == before.small &&
               now->second.bytes() == before.bytes() &&
               !(before.split() && oversize(before.bytes()));
      });
}

}  // namespace slotgraph::allocator

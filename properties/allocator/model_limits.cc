// What the real allocator must not be asked: it would be corrupted, or the order of a hash table
// would decide.
#include <algorithm>

#include "properties/allocator/model.h"

namespace slotgraph::allocator {

// A block that was recorded in a scope and dies outside leaves its streams behind in a table whose
// key is the address of the allocator's own block object: a later block that dies in a scope finds
// them, and its own uses are forgotten (Defects.AScopesRecordOutlivesItsBlock).
bool Model::may_free(Address live) const {
  for (const Device& device : devices_) {
    for (const auto& [start, segment] : device.segments) {
      Address address = start;
      for (const Block& block : segment.blocks) {
        if (address == live && recorded_ == Recorded::kDieInside)
          return !device.scopes.empty() || block.scope_uses.empty();
        if (address == live) return device.scopes.empty() || block.uses == block.scope_uses;
        address += block.bytes;
      }
    }
  }
  return false;
}

// A release too many makes the use count negative, and every later emptyCache asserts
// (DefectsDeathTest.AReleaseTooManySpoilsEmptyCache).
bool Model::may_release(int device, int pool) const {
  const auto known = devices_[device].use_counts.find(pool);
  return known == devices_[device].use_counts.end() || known->second > 0;
}

// A split block that max_split makes oversize is given to cudaFree while its neighbours live
// (DefectsDeathTest.ALoweredMaxSplitSizeFreesLiveNeighbours).
bool Model::may_configure(const Settings& settings) const {
  for (const Device& device : devices_)
    for (const auto& [address, segment] : device.segments)
      if (segment.split() && segment.bytes() >= settings.max_split_bytes) return false;
  return true;
}

// Whether it is known which work is done afterwards: not if a pool is waited for alone whose
// blocks were flushed together with others (flush_deferred).
bool Model::may_empty_cache(int pool) const {
  if (pool == 0) return true;
  for (const Device& device : devices_) {
    std::set<Ticket> own, other;
    for (const auto& [address, segment] : device.segments)
      for (const Block& block : segment.blocks)
        if (block.state == Block::State::kWaiting || block.state == Block::State::kDeferred)
          (segment.pool == pool ? own : other).insert(block.until);
    if (std::any_of(own.begin(), own.end(), [&](Ticket until) { return other.contains(until); }))
      return false;
  }
  return true;
}

// Pools are tried in the order of a hash table.
bool Model::may_use_on_oom(int device, int pool) const {
  const std::set<int>& pools = devices_[device].rescue_pools;
  return pools.empty() || pools.contains(pool);
}

}  // namespace slotgraph::allocator

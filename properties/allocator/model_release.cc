// How blocks and segments of the model come back: events, emptyCache, want of memory.
#include <algorithm>
#include <utility>

#include "properties/allocator/model.h"

namespace slotgraph::allocator {

// What waits for nothing behind the ticket.
void Model::make_free_until(Device& device, Ticket ticket, int pool) {
  for (auto& [address, segment] : device.segments) {
    if (pool != kAny && segment.pool != pool) continue;
    for (std::size_t i = segment.blocks.size(); i-- > 0;) {  // merging changes what is behind i
      const Block& block = segment.blocks[i];
      if (block.state != Block::State::kWaiting || block.until > ticket) continue;
      note(Situation::kEventDone);
      make_free(device, segment, i);
      i = std::min(i, segment.blocks.size());
    }
  }
}

// Upstream forgets every stream that was recorded in a scope, whether it was recorded outside too
// or not (Defects.ARecordInAScopeHides...), and queues the events of all blocks at once, in the
// order of a hash table: all are given the last one's ticket.
void Model::flush_deferred(Device& device) {
  std::vector<Block*> flushed;
  for (auto& [address, segment] : device.segments) {
    for (Block& block : segment.blocks) {
      if (block.state != Block::State::kDeferred) continue;
      for (const Stream& stream : block.scope_uses) block.uses.erase(stream);
      issued_ += block.uses.size();
      block.state = Block::State::kWaiting;
      if (!block.uses.empty()) flushed.push_back(&block);
      block.uses.clear();
      block.scope_uses.clear();
    }
  }
  for (Block* const block : flushed) block->until = issued_;
  make_free_until(device, 0, kAny);
}

// Waits for the blocks of one pool, or of all.
void Model::synchronise(Device& device, int pool) {
  flush_deferred(device);
  Ticket last = 0;
  for (const auto& [address, segment] : device.segments)
    for (const Block& block : segment.blocks)
      if (pool == kAny || segment.pool == pool) last = std::max(last, block.until);
  done_ = std::max(done_, last);
  make_free_until(device, last, pool);
}

// False if the allocator asserts that no scope is open.
bool Model::release_cached(Device& device, int pool) {
  if (pool == 0 && device.scopes.empty()) {
    ++device.counters["synchronisations"];
    synchronise(device, kAny);
    release_whole_segments(device, 0);
  }
  std::vector<int> freeable;
  for (const auto& [id, count] : device.use_counts)
    if (count == 0 && (pool == 0 || pool == id)) freeable.push_back(id);
  for (const int id : freeable) {
    if (pool != 0) {
      ++device.counters["synchronisations"];
      if (!device.scopes.empty()) return false;
      synchronise(device, id);
    }
    release_whole_segments(device, id);
    if (std::any_of(device.segments.begin(), device.segments.end(),
                    [&](const auto& entry) { return entry.second.pool == id; }))
      continue;
    device.use_counts.erase(id);
    note(Situation::kPoolErased);
  }
  return true;
}

void Model::release_whole_segments(Device& device, int pool) {
  std::vector<Address> whole;
  for (const auto& [address, segment] : device.segments)
    if (segment.pool == pool && segment.whole()) whole.push_back(address);
  for (const Address address : whole) release_segment(device, address);
}

// A block of at least max_split is a whole segment (may_configure): first one that suffices, else
// the largest ones until they do.
bool Model::release_oversize(Device& device, const Request& request) {
  if (settings_.max_split_bytes == Settings::kUnlimited) return false;
  const std::size_t wanted = std::max(request.bytes, settings_.max_split_bytes);
  std::vector<std::pair<std::size_t, Address>> candidates;
  for (const auto& [address, segment] : device.segments)
    if (serves(segment, request) && segment.whole() && oversize(segment.bytes()))
      candidates.emplace_back(segment.bytes(), address);
  std::sort(candidates.begin(), candidates.end());
  const auto first = std::lower_bound(candidates.begin(), candidates.end(),
                                      std::pair<std::size_t, Address>(wanted, 0));
  if (first != candidates.end()) {
    note(Situation::kOversizeReleased);
    release_segment(device, first->second);
    return true;
  }
  std::size_t released = 0;
  while (released < wanted && !candidates.empty()) {
    note(Situation::kOversizeReleased);
    released += candidates.back().first;
    release_segment(device, candidates.back().second);
    candidates.pop_back();
  }
  return released >= wanted;
}

// Releases whole large segments of the default pool: those that have been free for at least the
// average number of searches, again and again until the device is below the threshold.
void Model::collect_garbage(Device& device) {
  if (!device.limit) return;
  const auto threshold =
      static_cast<std::size_t>(settings_.garbage_threshold * static_cast<double>(*device.limit));
  std::vector<std::pair<Address, std::uint64_t>> candidates;  // with their ages
  std::uint64_t ages = 0;
  for (const auto& [address, segment] : device.segments) {
    if (segment.pool != 0 || segment.small || !segment.whole()) continue;
    candidates.emplace_back(address, device.searches - segment.blocks[0].freed_at);
    ages += candidates.back().second;
  }
  while (device.reserved() > threshold && !candidates.empty()) {
    const double average = static_cast<double>(ages) / static_cast<double>(candidates.size());
    std::erase_if(candidates, [&](const auto& candidate) {
      const auto [address, age] = candidate;
      if (static_cast<double>(age) < average) return false;
      ages -= age;
      note(Situation::kGarbage);
      release_segment(device, address);
      return true;
    });
  }
}

// The runtime waits for everything that is queued.
void Model::release_segment(Device& device, Address address) {
  const auto segment = device.segments.find(address);
  ++device.counters["device frees"];
  if (oversize(segment->second.bytes())) --device.counters["oversize segments"];
  note(Situation::kSegmentFreed);
  device.segments.erase(segment);
  done_ = issued_;
}

}  // namespace slotgraph::allocator

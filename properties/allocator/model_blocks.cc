// The model's blocks and segments: search, split, merge, release.
#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "properties/allocator/model.h"

namespace slotgraph::allocator {
namespace {

constexpr std::size_t kMinBlock = 512;
constexpr std::size_t kSmallSegment = 2 * kMiB;
constexpr std::size_t kLargeSegment = 20 * kMiB;  // for requests below kOwnSegment
constexpr std::size_t kOwnSegment = 10 * kMiB;    // from here on a segment is made to measure
constexpr std::size_t kOversizeSlack = 20 * kMiB;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

std::size_t Model::Segment::bytes() const {
  std::size_t sum = 0;
  for (const Block& block : blocks) sum += block.bytes;
  return sum;
}

std::size_t Model::Device::reserved() const {
  std::size_t sum = 0;
  for (const auto& [address, segment] : segments) sum += segment.bytes();
  return sum;
}

std::size_t Model::Request::segment_bytes() const {
  if (small()) return kSmallSegment;
  return bytes < kOwnSegment ? kLargeSegment : round_up(bytes, 2 * kMiB);
}

Address Model::Place::address() const {
  Address address = segment->first;
  for (std::size_t i = 0; i < index; ++i) address += segment->second.blocks[i].bytes;
  return address;
}

bool Model::serves(const Segment& segment, const Request& request) {
  return segment.pool == request.pool && segment.small == request.small() &&
         segment.stream.index == request.stream.index;
}

std::size_t Model::rounded(std::size_t bytes) const {
  const std::size_t divisions = settings_.divisions;
  if (divisions > 1 && bytes > kMinBlock * divisions)
    return round_up(bytes, std::bit_floor(bytes) / divisions);
  return round_up(bytes, kMinBlock);
}

std::optional<Model::Place> Model::find(Address address, Block::State state) {
  for (Device& device : devices_) {
    auto segment = device.segments.upper_bound(address);
    if (segment == device.segments.begin()) continue;
    --segment;
    for (Place place{segment, 0}; place.index < segment->second.blocks.size(); ++place.index)
      if (place.address() == address && place.block().state == state) return place;
  }
  return std::nullopt;
}

// The smallest sufficient block, then the lowest. The rules of max_split look at that one only.
std::optional<Model::Place> Model::best_fit(Device& device, const Request& request) {
  std::optional<Place> best;
  for (auto segment = device.segments.begin(); segment != device.segments.end(); ++segment) {
    if (!serves(segment->second, request)) continue;
    for (Place place{segment, 0}; place.index < segment->second.blocks.size(); ++place.index) {
      const Block& block = place.block();
      if (block.state != Block::State::kFree || block.bytes < request.bytes) continue;
      if (!best || block.bytes < best->block().bytes) best = place;
    }
  }
  if (!best) return best;
  const std::size_t bytes = best->block().bytes;
  if (!oversize(request.bytes) && oversize(bytes)) return std::nullopt;
  if (oversize(request.bytes) && bytes >= request.bytes + kOversizeSlack) return std::nullopt;
  return best;
}

std::optional<Model::Place> Model::grow(Device& device, const Request& request) {
  const std::size_t bytes = request.segment_bytes();
  const std::size_t total = device.reserved() + bytes;
  if (device.limit && total > *device.limit) return std::nullopt;
  const Fault fault = std::exchange(next_segment_, Fault::kNone);
  if (fault == Fault::kOther) throw Broken();
  if (fault == Fault::kOutOfMemory || total > kCapacity) return std::nullopt;
  Address address = device.base;
  for (const auto& [start, segment] : device.segments) {
    if (start - address >= bytes) break;
    address = start + segment.bytes();
  }
  ++device.counters["device allocations"];
  if (oversize(bytes)) ++device.counters["oversize segments"];
  note(Situation::kFreshSegment);
  Segment segment{request.stream, request.pool, request.small(), {{.bytes = bytes}}};
  return Place{device.segments.emplace(address, std::move(segment)).first, 0};
}

// A free block of a pool that opted in, which the pool then owns. Upstream opens a scope for the
// search, so a pool whose scope is open refuses it (Defects.APoolThatIsInUseCannotRescue).
std::optional<Model::Place> Model::rescue(Device& device, Request& request) {
  for (const int pool : device.rescue_pools) {
    const int index = static_cast<int>(&device - devices_.data());
    if (begin_scope(index, pool, {}).outcome != Reply::Outcome::kDone) throw Broken();
    Request in_pool = request;
    in_pool.pool = pool;
    const std::optional<Place> place = best_fit(device, in_pool);
    end_scope(index, pool);
    release(index, pool);
    if (!place) continue;
    note(Situation::kRescue);
    request = in_pool;
    return place;
  }
  return std::nullopt;
}

Address Model::take(Device& device, const Place& place, const Request& request,
                    std::size_t requested) {
  std::vector<Block>& blocks = place.segment->second.blocks;
  const std::size_t rest = place.block().bytes - request.bytes;
  const bool worth_it =
      request.small() ? rest >= kMinBlock : !oversize(request.bytes) && rest > kMiB;
  if (worth_it && !device.unsplit_pools.contains(request.pool)) {
    note(Situation::kSplit);
    place.block().bytes = request.bytes;
    blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(place.index) + 1,
                  {.bytes = rest, .freed_at = device.searches});
  }
  const Address address = place.address();
  place.block() = {
      .bytes = place.block().bytes, .requested = requested, .state = Block::State::kLive};
  ++device.counters["allocations"];
  if (oversize(place.block().bytes)) ++device.counters["oversize allocations"];
  std::erase(dead_, address);
  return address;
}

void Model::give_back(Device& device, const Place& place) {
  Block& block = place.block();
  if (oversize(block.bytes)) --device.counters["oversize allocations"];
  if (block.uses.empty()) {
    make_free(device, place.segment->second, place.index);
  } else if (!device.scopes.empty()) {
    block.state = Block::State::kDeferred;
    note(Situation::kDeferred);
  } else {
    block.state = Block::State::kWaiting;
    block.until = issued_ += block.uses.size();
    block.uses.clear();
    note(Situation::kWaiting);
  }
}

// Only free neighbours merge.
void Model::make_free(const Device& device, Segment& segment, std::size_t index) {
  std::vector<Block>& blocks = segment.blocks;
  blocks[index] = {.bytes = blocks[index].bytes, .freed_at = device.searches};
  const auto absorb_next = [&](std::size_t at) {
    if (at + 1 >= blocks.size() || blocks[at].state != Block::State::kFree ||
        blocks[at + 1].state != Block::State::kFree)
      return;
    note(Situation::kMerge);
    blocks[at] = {.bytes = blocks[at].bytes + blocks[at + 1].bytes, .freed_at = device.searches};
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  };
  absorb_next(index);
  if (index > 0) absorb_next(index - 1);
}

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
  const std::size_t reserved = device.reserved();
  if (reserved <= threshold) return;
  std::vector<std::tuple<int, std::size_t, Address, std::uint64_t>> candidates;  // with its age
  std::uint64_t ages = 0;
  for (const auto& [address, segment] : device.segments) {
    if (segment.pool != 0 || segment.small || !segment.whole()) continue;
    const std::uint64_t age = device.searches - segment.blocks[0].freed_at;
    candidates.emplace_back(segment.stream.index, segment.bytes(), address, age);
    ages += age;
  }
  std::sort(candidates.begin(), candidates.end());
  std::size_t reclaimed = 0;
  while (reclaimed < reserved - threshold && !candidates.empty()) {
    const double average = static_cast<double>(ages) / static_cast<double>(candidates.size());
    std::erase_if(candidates, [&](const auto& candidate) {
      const auto& [stream, bytes, address, age] = candidate;
      if (static_cast<double>(age) < average) return false;
      reclaimed += bytes;
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

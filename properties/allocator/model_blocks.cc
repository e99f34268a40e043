// The model's blocks: search, split, merge.
#include <algorithm>
#include <bit>
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

}  // namespace slotgraph::allocator

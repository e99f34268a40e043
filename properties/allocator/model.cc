#include "properties/allocator/model.h"

#include <algorithm>
#include <iterator>

namespace slotgraph::allocator {
namespace {

using Outcome = Reply::Outcome;

}  // namespace

const char* name_of(Situation situation) {
  constexpr const char* kNames[] = {
      "fresh segment",     "reuse",         "split",       "merge",         "waiting",
      "deferred",          "event done",    "retry",       "out of memory", "garbage",
      "oversize released", "segment freed", "pool erased", "refused",       "restored",
      "restored stale",    "in scope",      "rescue",      "broken"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Situation::kCount));
  return kNames[static_cast<int>(situation)];
}

Model::Model(const std::array<Address, kDevices>& bases, Recorded recorded) : recorded_(recorded) {
  for (int device = 0; device < kDevices; ++device) {
    devices_[device].base = bases[device];
    for (const char* const name :
         {"allocations", "retries", "out of memory", "synchronisations", "device allocations",
          "device frees", "oversize allocations", "oversize segments"})
      devices_[device].counters[name] = 0;
  }
}

Reply Model::refused() {
  note(Situation::kRefused);
  return {Outcome::kRefused};
}

Reply Model::allocate(Stream stream, std::size_t bytes) {
  if (bytes == 0) return {Outcome::kDone, {0}};
  Device& device = devices_[stream.device];
  if (device.scopes.empty()) {
    flush_deferred(device);
    make_free_until(device, done_, kAny);
  }
  Request request{stream, 0, rounded(bytes)};
  const auto scope =
      std::find_if(device.scopes.rbegin(), device.scopes.rend(),
                   [&](const Scope& open) { return open.filter.admits(thread_, stream.index); });
  if (scope != device.scopes.rend()) {
    if (!device.use_counts.contains(scope->pool)) return refused();
    request.pool = scope->pool;
    note(Situation::kInScope);
  }
  if (device.limit && request.pool == 0 && !request.small()) ++device.searches;
  std::optional<Place> place = best_fit(device, request);
  if (place) {
    note(Situation::kReuse);
  } else {
    try {
      place = obtain(device, request);
    } catch (const Broken&) {
      note(Situation::kBroken);
      return refused();
    }
  }
  if (!place) {
    ++device.counters["out of memory"];
    note(Situation::kOutOfMemory);
    return {Outcome::kOutOfMemory};
  }
  return {Outcome::kDone, {take(device, *place, request, bytes)}};
}

// What the allocator tries, in this order, when it has no block.
std::optional<Model::Place> Model::obtain(Device& device, Request& request) {
  collect_garbage(device);
  std::optional<Place> place = grow(device, request);
  if (!place && request.pool == 0) place = rescue(device, request);
  if (!place && release_oversize(device, request)) place = grow(device, request);
  if (place || !device.scopes.empty()) return place;
  release_cached(device, 0);
  ++device.counters["retries"];
  note(Situation::kRetry);
  return grow(device, request);
}

Reply Model::free(Address address) {
  const auto place = find(address, Block::State::kLive);
  if (!place) return refused();
  give_back(devices_[place->segment->second.stream.device], *place);
  std::erase(dead_, address);
  dead_.push_back(address);
  if (dead_.size() > 8) dead_.erase(dead_.begin());
  return {};
}

// Upstream compares handles, which are null for the default stream of every device: the default
// stream of another device passes for the block's own (Defects.UsesOnAnotherDefaultStream...).
Reply Model::record_stream(Address live, Stream stream) {
  const auto place = find(live, Block::State::kLive);
  if (!place) return refused();
  const Stream own = place->segment->second.stream;
  if (stream == own || (stream.index == 0 && own.index == 0)) return {};
  place->block().uses.insert(stream);
  if (!devices_[own.device].scopes.empty()) place->block().scope_uses.insert(stream);
  return {};
}

// Upstream raises the use count before it refuses (Defects.ARefusedScopeKeepsAUseCount).
Reply Model::begin_scope(int device, int pool, Filter filter) {
  if (retain(device, pool).outcome != Outcome::kDone) return {Outcome::kRefused};
  if (open(device, pool)) return refused();
  devices_[device].scopes.push_back({pool, filter});
  return {};
}

Reply Model::end_scope(int device, int pool) {
  return std::erase_if(devices_[device].scopes, [&](const auto& s) { return s.pool == pool; })
             ? Reply{}
             : refused();
}

Reply Model::retain(int device, int pool) {
  auto& counts = devices_[device].use_counts;
  const auto known = counts.find(pool);
  if (known != counts.end() && known->second == 0) return refused();
  ++counts[pool];
  return {};
}

Reply Model::release(int device, int pool) {
  auto& counts = devices_[device].use_counts;
  const auto known = counts.find(pool);
  if (known == counts.end()) return refused();
  --known->second;
  return {};
}

Reply Model::empty_cache(int pool) {
  for (Device& device : devices_)
    if (!release_cached(device, pool)) return refused();
  return {};
}

Reply Model::forbid_splits(int device, int pool) {
  devices_[device].unsplit_pools.insert(pool);
  return {};
}

Reply Model::use_on_oom(int device, int pool, bool use) {
  std::set<int>& pools = devices_[device].rescue_pools;
  use ? (void)pools.insert(pool) : (void)pools.erase(pool);
  return {};
}

Reply Model::mark(Stream) {
  marks_.push_back(++issued_);
  return {};
}

Reply Model::wait(int mark) {
  done_ = std::max(done_, marks_[mark]);
  return {};
}

Reply Model::fail_next_segment(bool out_of_memory) {
  next_segment_ = out_of_memory ? Fault::kOutOfMemory : Fault::kOther;
  return {};
}

Reply Model::configure(const Settings& settings) {
  settings_ = settings;
  return {};
}

Reply Model::limit(int device, double fraction) {
  std::optional<std::size_t>& bytes = devices_[device].limit;
  bytes.reset();
  if (fraction < 1) bytes = static_cast<std::size_t>(fraction * static_cast<double>(kCapacity));
  return {};
}

bool Model::open(int device, int pool) const {
  const std::vector<Scope>& scopes = devices_[device].scopes;
  return std::any_of(scopes.begin(), scopes.end(), [&](const auto& s) { return s.pool == pool; });
}

std::vector<Address> Model::live() const {
  std::vector<Address> result;
  for (const Device& device : devices_) {
    for (const auto& [start, segment] : device.segments) {
      Address address = start;
      for (const Block& block : segment.blocks) {
        if (block.state == Block::State::kLive) result.push_back(address);
        address += block.bytes;
      }
    }
  }
  return result;
}

DeviceStates Model::states() {
  DeviceStates result;
  for (int d = 0; d < kDevices; ++d) {
    const Device& device = devices_[d];
    DeviceState& seen = result[d];
    seen.use_counts = device.use_counts;
    seen.statistics = device.counters;
    for (const char* const size : {" all", " small", " large"}) {
      for (const char* const name :
           {"allocation", "segment", "active", "inactive split", "allocated bytes",
            "reserved bytes", "active bytes", "inactive split bytes", "requested bytes"})
        seen.statistics[std::string(name) + size] = 0;
    }
    for (const auto& [address, segment] : device.segments) {
      const auto add = [&, small = segment.small](const std::string& name, std::size_t value) {
        for (const char* const size : {" all", small ? " small" : " large"})
          seen.statistics[name + size] += static_cast<std::int64_t>(value);
      };
      add("segment", 1);
      add("reserved bytes", segment.bytes());
      seen.segments.push_back({address, segment.stream.index, segment.pool, segment.small});
      for (const Block& block : segment.blocks) {
        const bool live = block.state == Block::State::kLive;
        const bool active = block.state != Block::State::kFree;
        seen.segments.back().blocks.push_back(
            {block.bytes, active ? block.requested : 0, live, active});
        if (live) {
          add("allocation", 1);
          add("allocated bytes", block.bytes);
        }
        if (active) {
          add("active", 1);
          add("active bytes", block.bytes);
          add("requested bytes", block.requested);
        } else if (segment.split()) {
          add("inactive split", 1);
          add("inactive split bytes", block.bytes);
        }
      }
    }
  }
  return result;
}

}  // namespace slotgraph::allocator

#include "core/emulation/address_space.h"

#include <iterator>

namespace slotgraph::emulation {
namespace {

// The place for `size` bytes inside the highest 32 MiB chunk that has room for it; long requests
// end at the range's end.
std::optional<std::uintptr_t> highest_chunk(const std::map<std::uintptr_t, std::size_t>& free,
                                            std::size_t size) {
  constexpr std::size_t chunk = AddressSpace::kChunk;
  for (auto it = free.rbegin(); it != free.rend(); ++it) {
    const std::uintptr_t begin = it->first;
    const std::uintptr_t end = begin + it->second;
    if (it->second < size) continue;
    if (size >= chunk) return (end - size) / AddressSpace::kGranule * AddressSpace::kGranule;
    for (std::uintptr_t top = end; top > begin;) {
      const std::uintptr_t floor = (top - 1) / chunk * chunk;
      const std::uintptr_t low = floor < begin ? begin : floor;
      if (top - low >= size) return low;
      top = low;
    }
    return begin;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uintptr_t> AddressSpace::choose(std::size_t size, AddressPolicy policy,
                                                   Random& random) const {
  if (policy == AddressPolicy::kDescendingChunks) return highest_chunk(free_, size);
  std::size_t fitting = 0;
  for (const auto& [address, bytes] : free_) {
    if (bytes < size) continue;
    if (policy == AddressPolicy::kAscending) return address;
    ++fitting;
  }
  if (fitting == 0) return std::nullopt;
  std::size_t pick = random.below(fitting);
  for (const auto& [address, bytes] : free_) {
    if (bytes < size || pick-- != 0) continue;
    const std::size_t places = (bytes - size) / kGranule + 1;
    return address + random.below(places < 64 ? places : 64) * kGranule;
  }
  return std::nullopt;
}

std::optional<std::uintptr_t> AddressSpace::take(std::size_t size, AddressPolicy policy,
                                                 Random& random) {
  const auto address = choose(size, policy, random);
  if (!address) return std::nullopt;
  const auto range = std::prev(free_.upper_bound(*address));
  const std::uintptr_t begin = range->first;
  const std::uintptr_t end = begin + range->second;
  free_.erase(range);
  if (*address > begin) free_[begin] = *address - begin;
  if (end > *address + size) free_[*address + size] = end - *address - size;
  return address;
}

void AddressSpace::give_back(std::uintptr_t address, std::size_t size) {
  auto it = free_.emplace(address, size).first;
  if (const auto next = std::next(it); next != free_.end() && address + size == next->first) {
    it->second += next->second;
    free_.erase(next);
  }
  if (it == free_.begin()) return;
  if (const auto previous = std::prev(it); previous->first + previous->second == it->first) {
    previous->second += it->second;
    free_.erase(it);
  }
}

}  // namespace slotgraph::emulation

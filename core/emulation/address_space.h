// Where a device allocation lies: free ranges of one fixed address range, and the policy that picks
// among them.
#ifndef CORE_EMULATION_ADDRESS_SPACE_H_
#define CORE_EMULATION_ADDRESS_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "core/emulation/random.h"

namespace slotgraph::emulation {

enum class AddressPolicy { kAscending, kDescendingChunks, kSeeded };

// Not thread-safe. Sizes are multiples of kGranule. The result depends only on the policy, the seed
// and the live ranges: a range that was given back leaves no trace.
class AddressSpace {
 public:
  static constexpr std::size_t kGranule = std::size_t{2} << 20;
  static constexpr std::size_t kChunk = std::size_t{32} << 20;
  static constexpr std::size_t kRange = std::size_t{1} << 38;  // addresses of one device

  static constexpr std::uintptr_t base(int device) { return 0x700000000000 + device * kRange; }
  static constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + kGranule - 1) / kGranule * kGranule;
  }

  AddressSpace(std::uintptr_t base, std::size_t size) { free_[base] = size; }

  // The address of a range of `size` bytes, or nothing if no free range is long enough.
  std::optional<std::uintptr_t> take(std::size_t size, AddressPolicy policy, Random& random);
  void give_back(std::uintptr_t address, std::size_t size);

 private:
  std::optional<std::uintptr_t> choose(std::size_t size, AddressPolicy policy,
                                       Random& random) const;

  std::map<std::uintptr_t, std::size_t> free_;  // address → bytes; neighbours are always merged
};

}  // namespace slotgraph::emulation

#endif  // CORE_EMULATION_ADDRESS_SPACE_H_

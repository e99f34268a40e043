#include "core/order/branch_order.h"

#include <fmt/format.h>

#include <bit>

#include "core/error.h"

namespace slotgraph {

std::vector<int> cp_sizes(int largest, int smallest) {
  const auto power_of_two = [](int size) {
    return size > 0 && std::has_single_bit(static_cast<unsigned>(size));
  };
  if (!power_of_two(largest) || !power_of_two(smallest) || smallest > largest) {
    throw Error(Error::kInput,
                {"OB1", "cp sizes", fmt::format("{} down to {}", largest, smallest),
                 "powers of two, the smallest not above the largest", "choose other sizes"});
  }
  std::vector<int> sizes;
  for (int size = largest; size >= smallest; size /= 2) sizes.push_back(size);
  return sizes;
}

int canonical_variant(int variants) { return variants - 1; }

int remap(int entry, int variant, int chunks) {
  return entry > 0 ? entry + variant * chunks : entry - variant * chunks;
}

Order branch_order(const Order& base, int chunks, int variants, int canonical,
                   BranchArrangement arrangement) {
  if (variants < 1 || canonical < 0 || canonical >= variants) {
    throw Error(Error::kInput,
                {"OB2", "canonical variant", fmt::format("{} of {}", canonical, variants),
                 "one of at least one variants", "choose a variant from 0"});
  }
  check_order(base, chunks);
  std::vector<int> sequence{canonical};
  for (int variant = 0; variant < variants; ++variant) {
    if (variant != canonical) sequence.push_back(variant);
  }
  Order order;
  order.reserve(base.size() * variants);
  if (arrangement == BranchArrangement::kLockstep) {
    for (const int entry : base)
      for (const int variant : sequence) order.push_back(remap(entry, variant, chunks));
  } else {
    for (const int variant : sequence)
      for (const int entry : base) order.push_back(remap(entry, variant, chunks));
  }
  return order;
}

}  // namespace slotgraph

// Ranges of device memory.
#ifndef CORE_MEMORY_REGION_H_
#define CORE_MEMORY_REGION_H_

#include <ATen/core/Tensor.h>

#include <cstddef>

namespace slotgraph {

struct Region {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::byte* end() const { return begin + bytes; }
  bool contains(const Region& other) const { return begin <= other.begin && other.end() <= end(); }
};

// The region goes from the first byte that the tensor's elements reach to past the last one; it is
// empty without elements.
Region region_of(const at::Tensor& tensor);
// False if either is empty.
bool overlap(const Region& a, const Region& b);
// Returns a tensor of the region's bytes, which does not keep the memory alive.
at::Tensor bytes_of(const Region& region);

}  // namespace slotgraph

#endif  // CORE_MEMORY_REGION_H_

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

// From the first to past the last byte that the tensor's elements reach; empty without elements.
Region region_of(const at::Tensor& tensor);
// False if either is empty.
bool overlap(const Region& a, const Region& b);
// Its bytes as a tensor, which does not keep the memory alive.
at::Tensor bytes_of(const Region& region);

}  // namespace slotgraph

#endif  // CORE_MEMORY_REGION_H_

#include "core/memory/region.h"

#include <ATen/EmptyTensor.h>

#include "core/memory/borrowed.h"

namespace slotgraph {

Region region_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(const_cast<void*>(tensor.const_data_ptr())),
          at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize())};
}

bool overlap(const Region& a, const Region& b) {
  return a.bytes > 0 && b.bytes > 0 && a.begin < b.end() && b.begin < a.end();
}

at::Tensor bytes_of(const Region& region) {
  return borrowed_tensor(region.begin, {static_cast<std::int64_t>(region.bytes)}, {1}, at::kByte,
                         nullptr);
}

}  // namespace slotgraph

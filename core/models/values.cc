#include "core/models/values.h"

#include <ATen/ops/empty.h>

#include "core/random.h"

namespace slotgraph {
at::Tensor integer_values(at::IntArrayRef sizes, at::ScalarType dtype, std::uint64_t seed,
                          double scale) {
  const at::Tensor values = at::empty(sizes, at::TensorOptions(at::kCPU).dtype(at::kDouble));
  const bool floating = at::isFloatingType(dtype);
  const std::int64_t range = floating ? 2048 : dtype == at::kBool ? 2 : 16;
  std::uint64_t state = seed;
  auto* const out = values.data_ptr<double>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const auto k = static_cast<std::int64_t>(split_mix64(state) >> 11) % range;
    out[i] = floating ? static_cast<double>(k - 1024) / 1024.0 * scale : static_cast<double>(k);
  }
  return values.to(dtype);
}

std::uint64_t mix(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t state = 0;
  for (const std::uint64_t part : parts) state = split_mix64(state) ^ part;
  return split_mix64(state);
}

}  // namespace slotgraph

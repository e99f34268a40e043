// Tensor values from an integer generator: the same on every machine and instruction set.
#ifndef CORE_MODELS_VALUES_H_
#define CORE_MODELS_VALUES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace slotgraph {

// A contiguous CPU tensor. Floating values are k / 2^10 * scale for integers k in [-1024, 1024);
// integers are in [0, 16); booleans are 0 or 1.
at::Tensor integer_values(at::IntArrayRef sizes, at::ScalarType dtype, std::uint64_t seed,
                          double scale = 1.0);

// One well-mixed number for a list of numbers: seeds of independent streams.
std::uint64_t mix(std::initializer_list<std::uint64_t> parts);

}  // namespace slotgraph

#endif  // CORE_MODELS_VALUES_H_

// SplitMix64: a small generator whose stream is the same on every machine.
#ifndef CORE_RANDOM_H_
#define CORE_RANDOM_H_

#include <cstdint>

namespace slotgraph {

inline constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ull;  // the step of the state

// Advances the state and returns the next number.
inline std::uint64_t split_mix64(std::uint64_t& state) {
  std::uint64_t z = (state += kGolden);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

}  // namespace slotgraph

#endif  // CORE_RANDOM_H_

// SplitMix64: a small generator whose stream is the same on every machine.
#ifndef CORE_EMULATION_RANDOM_H_
#define CORE_EMULATION_RANDOM_H_

#include <cstdint>

namespace slotgraph::emulation {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  // Uniform enough in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace slotgraph::emulation

#endif  // CORE_EMULATION_RANDOM_H_

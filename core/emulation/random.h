// The simulator's own stream of draws.
#ifndef CORE_EMULATION_RANDOM_H_
#define CORE_EMULATION_RANDOM_H_

#include <cstdint>

#include "core/random.h"

namespace slotgraph::emulation {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return split_mix64(state_); }
  // Uniform enough in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace slotgraph::emulation

#endif  // CORE_EMULATION_RANDOM_H_

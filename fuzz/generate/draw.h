// What both scales of cases are drawn with.
#ifndef FUZZ_GENERATE_DRAW_H_
#define FUZZ_GENERATE_DRAW_H_

#include <rapidcheck.h>

#include <cstdint>
#include <vector>

#include "fuzz/case/case.h"

namespace slotgraph::fuzz {

// Draws from RapidCheck generators, one independent random stream for each draw.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  template <typename T>
  T operator()(const rc::Gen<T>& generator) {
    constexpr int size = 100;
    return generator(random_.split(), size).value();
  }
  int below(int bound) { return (*this)(rc::gen::inRange(0, bound)); }
  bool chance(int one_in) { return below(one_in) == 0; }
  template <typename T>
  T one_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<int>(choices.size())))];
  }

 private:
  rc::Random random_;
};

// All microbatches of the largest covered count up to `most` (else of the smallest); on plans with
// several variants at least two variants meet inside the first ring length.
ScheduleCase adversarial(Draw& draw, const Plan& plan, int most);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_GENERATE_DRAW_H_

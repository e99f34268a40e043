// A sweep: trials with a failure at the 1st, 2nd, ... fault point, until one in which nothing
// fires. How a trial is run, here or in another process, is the caller's.
#ifndef FUZZ_FAULT_SWEEP_H_
#define FUZZ_FAULT_SWEEP_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "fuzz/fault/trial.h"

namespace slotgraph::fuzz {

struct Step {
  enum class Next {
    kNone,   // this trial alone
    kMore,   // the same with the next number, until it no longer fires; of a pair, the second one's
    kBeyond  // the number is beyond the last one: nothing may fire
  };
  Injection injection;
  Next next = Next::kNone;
};

class Sweep {
 public:
  // `deepest`: how far the second failures of pairs are followed.
  explicit Sweep(std::uint64_t deepest = UINT64_MAX) : deepest_(deepest) {}

  void add(const Injection& injection, Step::Next next);
  bool empty() const { return steps_.empty(); }
  std::size_t waiting() const { return steps_.size(); }
  Step take();
  // What came of a step that was taken: how often something failed, and whether the trial came to
  // its end. May add a step, which comes next.
  void took(const Step& step, int fired, bool ended);
  // Leaves out what was not taken.
  void stop();

  struct Totals {
    std::uint64_t fault_points = 0;    // that were meant to fail
    std::uint64_t points_reached = 0;  // that did
    std::uint64_t walks = 0;           // ways through the numbers of a point,
    std::uint64_t exhausted = 0;       // and those whose last trial fired nothing
    std::uint64_t cut = 0;             // pairs that were not followed to their end
    bool stopped = false;

    Totals& operator+=(const Totals& other);
    // Everything fired, and then nothing more did.
    bool complete() const {
      return !stopped && cut == 0 && points_reached == fault_points && exhausted == walks;
    }
  };
  const Totals& totals() const { return totals_; }

 private:
  std::uint64_t deepest_;
  std::deque<Step> steps_;
  Totals totals_;
};

// All trials from these first ones on, in this process.
std::vector<Trial> run_sweep(const Operation& operation, const std::vector<Injection>& first);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_FAULT_SWEEP_H_

// Minimises a failure by its signature.
#ifndef FUZZ_SHRINK_SHRINK_H_
#define FUZZ_SHRINK_SHRINK_H_

#include <functional>
#include <string>
#include <vector>

#include "fuzz/shrink/reductions.h"

namespace slotgraph::fuzz {

// The signatures that these experiments show, in the same order; runs them in parallel.
using Judge = std::function<std::vector<std::string>(const std::vector<Experiment>&)>;

struct ShrinkOptions {
  int budget = 1000;  // runs
  int at_once = 2;    // experiments that the judge gets together
  std::function<bool()> stop = [] { return false; };
  // Told about every accepted step, at once.
  std::function<void(const Reduction& accepted, int runs)> accepted = nullptr;
};

struct Shrunk {
  Experiment experiment;
  int runs = 0;
  int steps = 0;           // accepted
  bool canonical = false;  // no reduction is left that still fails: the budget was enough
};

// Takes the first reduction that still shows the signature, and starts again. The result depends on
// the experiment and the judge only, not on how many run at once.
Shrunk shrink(const Experiment& experiment, const std::string& signature, const Judge& judge,
              const ShrinkOptions& options);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_SHRINK_SHRINK_H_

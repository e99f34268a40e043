// Smaller variants of an experiment: what a shrinker may try. Pure.
#ifndef FUZZ_SHRINK_REDUCTIONS_H_
#define FUZZ_SHRINK_REDUCTIONS_H_

#include <string>
#include <vector>

#include "fuzz/repro/experiment.h"

namespace slotgraph::fuzz {

struct Reduction {
  std::string what;  // `variants 1 0`, `microbatches 2`, `layer 3 dropped`
  Experiment experiment;
};

// The largest steps first: plan shape, variants, microbatches, layers; then modes, faults, sizes
// and everything that has a plainest value. Each is smaller than what it comes from, so that taking
// one after another ends: at the canonical form, from which none is left that still fails. A plan
// that the planner refuses is left out.
std::vector<Reduction> reductions(const Experiment& experiment);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_SHRINK_REDUCTIONS_H_

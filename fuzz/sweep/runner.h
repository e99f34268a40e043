// Spreads the trials of a sweep over worker processes and judges what comes back.
#ifndef FUZZ_SWEEP_RUNNER_H_
#define FUZZ_SWEEP_RUNNER_H_

#include <string>

#include "fuzz/case/case.h"
#include "fuzz/sweep/options.h"

namespace slotgraph::fuzz {

// `value` is the case of the options, `program` what workers are started from. Returns the exit
// code.
int run_sweep(const SweepOptions& options, const Case& value, const std::string& program);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_SWEEP_RUNNER_H_

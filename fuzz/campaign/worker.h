// A worker process: runs its share of the cases and writes one line for each to standard output.
#ifndef FUZZ_CAMPAIGN_WORKER_H_
#define FUZZ_CAMPAIGN_WORKER_H_

#include "fuzz/campaign/options.h"
#include "fuzz/generate/generate.h"

namespace slotgraph::fuzz {

// Lines: `start INDEX`, then `record JSON`. Ends when the cases are over, or when standard input is
// closed.
int run_worker(const Options& options, const Sources& sources);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_CAMPAIGN_WORKER_H_

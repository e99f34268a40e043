// A worker process: runs the cases that its parent names and answers with their records.
#ifndef FUZZ_CAMPAIGN_WORKER_H_
#define FUZZ_CAMPAIGN_WORKER_H_

#include "fuzz/campaign/options.h"
#include "fuzz/generate/generate.h"

namespace slotgraph::fuzz {

// The case of that index.
Generated draw_case(const Options& options, const Sources& sources, std::uint64_t index);

// Reads case indices from standard input, one a line, and writes one record a line to standard
// output. Ends with the end of the input.
int run_worker(const Options& options, const Sources& sources);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_CAMPAIGN_WORKER_H_

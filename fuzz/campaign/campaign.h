// The campaign: starts workers, collects their records, shows progress, writes the results.
#ifndef FUZZ_CAMPAIGN_CAMPAIGN_H_
#define FUZZ_CAMPAIGN_CAMPAIGN_H_

#include "core/record/record.h"
#include "fuzz/campaign/options.h"
#include "fuzz/generate/generate.h"

namespace slotgraph::fuzz {

// Runs workers of `program` until the cases or the seconds are over, or SIGINT or SIGTERM comes.
// Writes records-*.jsonl, summary.json and failing cases to options.out. Returns the exit code.
int run_campaign(const Options& options, const Sources& sources, const std::string& program);

// Runs one case file in this process and prints what it shows. Returns the exit code.
int run_case(const Options& options);

// What differed and the command that reproduces it.
void print_failure(const Record& record);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_CAMPAIGN_CAMPAIGN_H_

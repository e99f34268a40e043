// Command line of the campaign.
#ifndef FUZZ_CAMPAIGN_OPTIONS_H_
#define FUZZ_CAMPAIGN_OPTIONS_H_

#include <cstdint>
#include <string>

#include "core/exit_code.h"

namespace slotgraph::fuzz {

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t cases = 0;  // 0: until the seconds are over
  double seconds = 50;      // 0: no limit
  std::string filter;       // part of the plan's name
  int jobs = 2;             // worker processes
  int again = 0;            // cases that run once more, each in a fresh process
  bool balanced = false;    // public batches are scheduled anew, by the balanced scheduler
  bool large = false;       // cases sized for a GPU
  std::string case_file;    // run this one case
  std::string out;          // folder of records; absolute
  bool worker = false;      // this process runs the cases that its parent names
};

// Relative paths are resolved against BUILD_WORKING_DIRECTORY, the folder in which `bazel run` was
// called. On --help or a wrong flag prints and sets `exit_code`; returns false then.
bool parse(int argc, char** argv, Options& options, int& exit_code);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_CAMPAIGN_OPTIONS_H_

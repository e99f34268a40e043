// What a run found, and the folder that it lies in.
#ifndef PROBES_CONFORMANCE_RESULTS_H_
#define PROBES_CONFORMANCE_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "probes/conformance/options.h"
#include "probes/conformance/program.h"

namespace slotgraph::conformance {

struct Result {
  std::uint64_t operations = 0;
  std::uint64_t events = 0;
  std::uint64_t calls = 0;
  std::string sha256;  // of the log
  std::string log;     // empty unless it is kept

  // As many digits as a digests file has.
  std::string short_digest() const { return sha256.substr(0, 16); }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Result, operations, events, calls, sha256, log)

using Counts = std::map<std::string, std::uint64_t>;

struct Results {
  std::string device;  // device::Capabilities
  std::string instruction_set;
  std::map<Policy, std::vector<Result>> programs;
  Counts kinds;
  Counts situations;

  // Programs, operations, events and calls of all policies.
  Counts totals() const;
};

// Whole files or none. Throws slotgraph::Error F03.
void write_folder(const Options& options, const Results& results);

// What --compare reads: summary.json, and the digests and logs of each policy.
struct Golden {
  std::string device;
  std::string instruction_set;
  std::map<Policy, std::vector<std::string>> digests;  // short ones
  std::map<Policy, std::vector<std::string>> logs;     // of the first programs
};
// Throws slotgraph::Error F09 if the folder is of another seed or length of programs, and J01 to
// J04 if a file is missing or none of ours. Policies that the run does not ask for are not read.
Golden read_golden(const Options& options);

}  // namespace slotgraph::conformance

#endif  // PROBES_CONFORMANCE_RESULTS_H_

// The process that runs programs.
#ifndef PROBES_CONFORMANCE_WORKER_H_
#define PROBES_CONFORMANCE_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "probes/conformance/options.h"
#include "probes/conformance/results.h"

namespace slotgraph::conformance {

// A request: some programs in a row. A reply also says on what they ran; with no programs, it says
// only that.
struct Request {
  int policy = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t logs = 0;  // the log is part of a result if the program's number is below
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Request, policy, first, count, logs)

struct Reply {
  std::string device;
  std::string instruction_set;
  std::vector<Result> results;
  Counts kinds;
  Counts situations;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Reply, device, instruction_set, results, kinds, situations)

// Answers requests on standard input, a JSON line each, until its end. Ends at once with an exit
// code and a message: 2 if there is no device, 1 if memory has not come back after a program.
int run_worker(const Options& options);

}  // namespace slotgraph::conformance

#endif  // PROBES_CONFORMANCE_WORKER_H_

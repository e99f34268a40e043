#include "probes/conformance/worker.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/device/device.h"
#include "core/digest.h"
#include "core/exit_code.h"
#include "fuzz/process/pool.h"
#include "fuzz/process/program.h"
#include "probes/conformance/run.h"

namespace slotgraph::conformance {
namespace {

void add(Counts& to, const Counts& counts) {
  for (const auto& [name, count] : counts) to[name] += count;
}

}  // namespace

int run_worker(const Options& options) {
  fuzz::die_with_parent();
  device::initialise();
  const device::Capabilities device = device::capabilities();
  fuzz::serve<Request>([&](const Request& request) {
    Reply reply{.device = device.name,
                .instruction_set = device.instruction_set,
                .results = {},
                .kinds = {},
                .situations = {}};
    for (std::uint64_t i = request.first; i < request.first + request.count; ++i) {
      Outcome outcome =
          run(generate(options.seed, kPolicies.at(request.policy), i, options.operations));
      if (outcome.left_bytes != 0) {
        fmt::print(stderr, "{}after program {} ({})\n", outcome.log, i,
                   name_of(kPolicies.at(request.policy)));
        std::exit(kViolated);
      }
      reply.results.push_back({.operations = outcome.operations,
                               .events = outcome.events,
                               .calls = outcome.calls,
                               .sha256 = sha256(outcome.log),
                               .log = i < request.logs ? std::move(outcome.log) : ""});
      add(reply.kinds, outcome.kinds);
      add(reply.situations, outcome.situations);
    }
    return reply;
  });
  return kHolds;
}

}  // namespace slotgraph::conformance

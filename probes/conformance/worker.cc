#include "probes/conformance/worker.h"

#include <fmt/format.h>

#include <iostream>
#include <string>

#include "core/device/device.h"
#include "core/digest.h"
#include "core/error.h"
#include "core/exit_code.h"
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
  try {
    device::initialise();
  } catch (const Error& error) {
    if (error.rule() != "D02") throw;
    fmt::print(stderr, "{}\n", error.what());
    return kUnknown;
  }
  const device::Capabilities device = device::capabilities();
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = nlohmann::json::parse(line).get<Request>();
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
        return kViolated;
      }
      reply.results.push_back({.operations = outcome.operations,
                               .events = outcome.events,
                               .calls = outcome.calls,
                               .sha256 = sha256(outcome.log),
                               .log = i < request.logs ? std::move(outcome.log) : ""});
      add(reply.kinds, outcome.kinds);
      add(reply.situations, outcome.situations);
    }
    fmt::print("{}\n", nlohmann::json(reply).dump());
    std::fflush(stdout);
  }
  return kHolds;
}

}  // namespace slotgraph::conformance

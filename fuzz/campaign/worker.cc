#include "fuzz/campaign/worker.h"

#include <fmt/format.h>
#include <malloc.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "core/device/device.h"
#include "core/record/record.h"
#include "fuzz/execute/execute.h"

namespace slotgraph::fuzz {

Generated draw_case(const Options& options, const Sources& sources, std::uint64_t index) {
  return options.large ? generate_large(sources, options.seed, index)
                       : generate(sources, case_seed(options.seed, index));
}

int run_worker(const Options& options, const Sources& sources) {
  // Cases allocate and free the same few MiB over and over: giving them back to the system each
  // time costs page faults.
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  device::initialise();
  Executor executor({.keep_captures = options.large, .compare_on_device = options.large});
  for (std::string line; std::getline(std::cin, line);) {
    const std::uint64_t index = std::stoull(line);
    const Generated generated = draw_case(options, sources, index);
    Record record;
    if (generated.skipped) {
      record.case_seed = generated.value.seed;
      record.plan = generated.plan;
      record.schedule = generated.schedule;
      record.skipped = true;
    } else {
      record = executor.run(generated.value);
    }
    record.index = index;
    fmt::print("{}\n", to_json(record).dump());
    std::fflush(stdout);
  }
  const std::vector<Finding> left = executor.end();
  for (const Finding& finding : left)
    fmt::print(stderr, "{}, {}: {}\n", finding.property, finding.where, finding.what);
  return left.empty() ? kHolds : kViolated;
}

}  // namespace slotgraph::fuzz

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

int run_worker(const Options& options, const Sources& sources) {
  // Cases allocate and free the same few MiB over and over: giving them back to the system each
  // time costs page faults.
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  device::initialise();
  for (std::string line; std::getline(std::cin, line);) {
    const std::uint64_t index = std::stoull(line);
    const Generated generated = generate(sources, case_seed(options.seed, index));
    Record record;
    if (generated.skipped) {
      record.case_seed = generated.value.seed;
      record.plan = generated.plan;
      record.schedule = generated.schedule;
      record.skipped = true;
    } else {
      record = execute(generated.value);
    }
    record.index = index;
    fmt::print("{}\n", to_json(record).dump());
    std::fflush(stdout);
  }
  return kHolds;
}

}  // namespace slotgraph::fuzz

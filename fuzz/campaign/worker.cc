#include "fuzz/campaign/worker.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>

#include "core/device/device.h"
#include "core/record/record.h"
#include "fuzz/execute/execute.h"

namespace slotgraph::fuzz {
namespace {

// The parent keeps the other end of standard input open while it wants more cases.
bool stop_requested() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, 0) != 0;
}

}  // namespace

int run_worker(const Options& options, const Sources& sources) {
  device::initialise();
  for (std::uint64_t index = static_cast<std::uint64_t>(options.worker);;
       index += static_cast<std::uint64_t>(options.jobs)) {
    if (index < options.first) continue;
    if (options.cases > 0 && index >= options.cases) return kHolds;
    if (stop_requested()) return kHolds;
    const Generated generated = generate(sources, case_seed(options.seed, index));
    fmt::print("start {}\n", index);
    std::fflush(stdout);
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
    fmt::print("record {}\n", to_json(record).dump());
    std::fflush(stdout);
  }
}

}  // namespace slotgraph::fuzz

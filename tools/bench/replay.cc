#include <c10/cuda/CUDACachingAllocator.h>
#include <fmt/format.h>

#include "core/device/device.h"
#include "tools/bench/sections.h"

namespace slotgraph::bench {
namespace {

// Microseconds of a block, forward and backward: of a loop of at least 30 ms.
double block_time(Station& station, const Work& work, int variant, int steps) {
  device::synchronise();
  const auto begin = Clock::now();
  for (int i = 0; i < steps; ++i) station.step(variant);
  device::synchronise();
  return 1000 * milliseconds_since(begin) / (steps * work.frames());
}

int steps_for(Station& station, const Work& work, int variant) {
  for (int i = 0; i < 3; ++i) station.step(variant);
  const double one = block_time(station, work, variant, 1) * work.frames() / 1000;
  return std::max(1, static_cast<int>(30 / one) + 1);
}

// Both in turn, in changing order.
struct Pair {
  Sample mine, other, ratio;
};
Pair measure_pair(Station& mine, Station& other, const Work& work, int variant) {
  const int steps = steps_for(mine, work, variant);
  (void)steps_for(other, work, variant);
  std::vector<double> a, b, ratios;
  for (int i = 0; i < kRepeats; ++i) {
    if (i % 2 == 0) a.push_back(block_time(mine, work, variant, steps));
    b.push_back(block_time(other, work, variant, steps));
    if (i % 2 == 1) a.push_back(block_time(mine, work, variant, steps));
    ratios.push_back(a.back() / b.back());
  }
  return {sample_of(a), sample_of(b), sample_of(ratios)};
}

// Microseconds to queue a replay.
double queue_time(Station& station, const Work& work, int variant) {
  device::synchronise();
  const auto begin = Clock::now();
  station.step(variant);
  const double time = 1000 * milliseconds_since(begin) / (2 * work.frames());
  device::synchronise();
  return time;
}

}  // namespace

void measure_replay(const Work& work, Report& report) {
  const std::string name = work.name();
  Station native(work, Mode::kPerVariant, Station::Gradients::kLent);
  native.capture();
  for (const Mode mode : {Mode::kPlacement, Mode::kArena, Mode::kCheckpoint, Mode::kEager}) {
    // What the others cost shows with all variants.
    if (mode != Mode::kPlacement && work.variants() < 4) continue;
    Station station(work, mode, Station::Gradients::kLent);
    station.capture();
    for (int variant = work.variants() - 1; variant >= 0; --variant) {
      const std::string cp = fmt::format("cp{}", work.cp_sizes[static_cast<std::size_t>(variant)]);
      const Pair pair = measure_pair(station, native, work, variant);
      report.add({"replay", name, to_string(mode), cp + " block", "us", pair.mine});
      if (mode == Mode::kPlacement)
        report.add({"replay", name, to_string(Mode::kPerVariant), cp + " block", "us", pair.other});
      report.add({"replay", name, to_string(mode), cp + " to per_variant", "ratio", pair.ratio});
      if (mode != Mode::kPlacement) continue;
      std::vector<double> times;
      for (int i = 0; i < kRepeats; ++i) times.push_back(queue_time(station, work, variant));
      report.add(
          {"replay", name, to_string(mode), cp + " queueing a replay", "us", sample_of(times)});
    }
  }
  Station lent(work, Mode::kPlacement, Station::Gradients::kLent);
  Station cloned(work, Mode::kPlacement, Station::Gradients::kCloned);
  lent.capture();
  cloned.capture();
  const int largest = work.variants() - 1;
  report.add({"replay", name, "placement", "with clones to lent", "ratio",
              measure_pair(cloned, lent, work, largest).ratio});
  const auto count = [] {
    return c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocation[0].allocated;
  };
  for (Station* const station : {&lent, &cloned}) {
    const auto before = count();
    station->step(largest);
    report.add("replay", name, "placement",
               std::string("allocations of a step, ") + (station == &lent ? "lent" : "cloned"),
               "count", static_cast<double>(count() - before));
  }
}

}  // namespace slotgraph::bench

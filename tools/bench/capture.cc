#include <c10/cuda/CUDACachingAllocator.h>
#include <fmt/format.h>

#include "core/device/device.h"
#include "tools/bench/sections.h"

namespace slotgraph::bench {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

constexpr Mode kGraphs[] = {Mode::kPerVariant, Mode::kPlacement, Mode::kArena, Mode::kCheckpoint};

constexpr int kCaptures = 7;

}  // namespace

void measure_capture(const Work& work, Report& report) {
  const std::string name = work.name();
  const int callables = work.frames() * work.variants();
  for (const Mode mode : kGraphs) {
    Station station(work, mode, Station::Gradients::kLent);
    std::vector<double> whole, alone;
    for (int i = 0; i < kCaptures; ++i) {
      station.drop();
      station.capture();
      alone.push_back(station.capture_milliseconds() / callables);
      whole.push_back((station.capture_milliseconds() + station.warm_up_milliseconds()) /
                      callables);
    }
    report.add(
        {"capture", name, to_string(mode), "per callable, after warm-up", "ms", sample_of(alone)});
    report.add(
        {"capture", name, to_string(mode), "per callable, with warm-up", "ms", sample_of(whole)});
  }
}

bool measure_many(Report& report) {
  const auto free_bytes = [] {
    device::synchronise();
    device::release_workspaces();
    caching::emptyCache();
    return device::memory_info().free_bytes;
  };
  bool clean = true;
  for (const int ring : {4, 8}) {
    Work work{.hidden = 256, .tokens = 64, .layers = 12, .ring = ring, .cp_sizes = {2, 1}};
    const int callables = work.frames() * work.variants();
    for (const Mode mode : kGraphs) {
      const std::size_t before = free_bytes();
      {
        Station station(work, mode, Station::Gradients::kCloned);
        station.capture();
        report.add("many callables", work.name(), to_string(mode),
                   fmt::format("{} callables, per callable", callables), "ms",
                   station.capture_milliseconds() / callables);
        const auto begin = Clock::now();
        for (int step = 0; step < 50; ++step) station.step(step % 2);
        device::synchronise();
        report.add("many callables", work.name(), to_string(mode), "step of a variant", "ms",
                   milliseconds_since(begin) / 50);
        report.add("many callables", work.name(), to_string(mode), "pools", "MiB",
                   static_cast<double>(station.set().memory().reserved_bytes) / (1 << 20));
      }
      const std::size_t after = free_bytes();
      clean = clean && after == before;
      report.add("many callables", work.name(), to_string(mode), "bytes not returned", "count",
                 static_cast<double>(before - after));
    }
  }
  return clean;
}

}  // namespace slotgraph::bench

#include "probes/conformance/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace slotgraph::conformance {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using Fields = std::function<std::vector<std::int64_t>(const Stat&)>;

// A restore, and events of several blocks, change blocks in the order of a hash table: the numbers
// in between differ from run to run.
std::vector<std::int64_t> everything(const Stat& stat) {
  return {stat.current, stat.peak, stat.allocated, stat.freed};
}
std::vector<std::int64_t> without_peak(const Stat& stat) {
  return {stat.current, stat.allocated, stat.freed};
}
std::vector<std::int64_t> current(const Stat& stat) { return {stat.current}; }

}  // namespace

std::vector<SegmentInfo> segments() {
  std::vector<SegmentInfo> found = caching::get()->snapshot({0, 0}, false).segments;
  std::sort(found.begin(), found.end(),
            [](const SegmentInfo& a, const SegmentInfo& b) { return a.address < b.address; });
  return found;
}

std::string to_string(const SegmentInfo& segment, int stream, int pool) {
  std::string text = fmt::format("segment {:x} {} {}", segment.address, segment.total_size,
                                 segment.is_large ? "large" : "small");
  if (stream != 0) text += fmt::format(" s{}", stream);
  if (pool != 0) text += fmt::format(" p{}", pool);
  text += ":";
  for (const auto& block : segment.blocks) {
    text += fmt::format(" {}", block.size);
    text += block.allocated ? fmt::format("a{}", block.requested_size) : block.active ? "w" : "f";
  }
  return text;
}

Counters counters() {
  const auto statistics = caching::getDeviceStats(0);
  Counters result{{"retries", {statistics.num_alloc_retries}},
                  {"out of memory", {statistics.num_ooms}},
                  {"synchronisations", {statistics.num_sync_all_streams}},
                  {"device allocations", {statistics.num_device_alloc}},
                  {"device frees", {statistics.num_device_free}},
                  {"oversize allocations", without_peak(statistics.oversize_allocations)},
                  {"oversize segments", without_peak(statistics.oversize_segments)}};
  const auto add = [&](const std::string& name, const StatArray& stats, const Fields& fields) {
    constexpr const char* kTypes[] = {"all", "small", "large"};
    for (int type = 0; type < 3; ++type)
      result[fmt::format("{} {}", name, kTypes[type])] = fields(stats[type]);
  };
  add("segment", statistics.segment, everything);
  add("reserved bytes", statistics.reserved_bytes, everything);
  add("allocation", statistics.allocation, without_peak);
  add("active", statistics.active, without_peak);
  add("allocated bytes", statistics.allocated_bytes, without_peak);
  add("active bytes", statistics.active_bytes, without_peak);
  add("requested bytes", statistics.requested_bytes, without_peak);
  add("inactive split", statistics.inactive_split, current);
  add("inactive split bytes", statistics.inactive_split_bytes, current);
  return result;
}

void reset_peaks() { caching::resetPeakStats(0); }

std::string difference(const Counters& before, const Counters& after) {
  std::string text;
  for (const auto& [name, values] : after) {
    std::vector<std::int64_t> changes = values;
    for (std::size_t i = 0; i < changes.size(); ++i) changes[i] -= before.at(name)[i];
    if (std::count(changes.begin(), changes.end(), 0) == std::ssize(changes)) continue;
    text += fmt::format("{}: {}\n", name, fmt::join(changes, " "));
  }
  return text;
}

}  // namespace slotgraph::conformance

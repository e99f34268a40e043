#include "probes/conformance/watcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/device/device.h"

namespace slotgraph::conformance {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

std::string_view name_of(Event::Action action) {
  constexpr std::string_view kNames[] = {"alloc",   "free",    "freed",    "+segment", "-segment",
                                         "+mapped", "-mapped", "snapshot", "oom"};
  return kNames[action];
}

std::string to_string(const Event& event) {
  std::string text(name_of(event.action));
  if (event.address != 0) text += fmt::format(" {:x}", event.address);
  text += fmt::format(" {}", event.bytes);
  if (event.stream != 0) text += fmt::format(" s{}", event.stream);
  if (event.pool != 0) text += fmt::format(" p{}", event.pool);
  return text;
}

void sort_runs(std::vector<Event>& events) {
  for (auto first = events.begin(); first != events.end();) {
    const auto last = std::find_if(
        first, events.end(), [&](const Event& event) { return event.action != first->action; });
    std::sort(first, last);
    first = last;
  }
}

void sort_all(Watched& watched) {
  std::sort(watched.events.begin(), watched.events.end());
  std::map<std::string_view, std::uint64_t> counts;
  for (const auto& [call, count] : watched.calls) counts[call] += count;
  watched.calls.assign(counts.begin(), counts.end());
}

}  // namespace

bool Watched::has(Event::Action action) const {
  return std::any_of(events.begin(), events.end(),
                     [&](const Event& event) { return event.action == action; });
}

std::uint64_t Watched::call_count() const {
  return std::accumulate(calls.begin(), calls.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& run) { return sum + run.second; });
}

std::string to_string(Watched watched, Order order) {
  order == Order::kNone ? sort_all(watched) : sort_runs(watched.events);
  std::string text;
  for (const Event& event : watched.events)
    text += (text.empty() ? " | " : ", ") + to_string(event);
  if (!watched.calls.empty()) text += " |";
  for (const auto& [call, count] : watched.calls)
    text += count == 1 ? fmt::format(" {}", call) : fmt::format(" {}*{}", call, count);
  return text;
}

Watcher& Watcher::attach(StreamOrdinal stream, PoolOrdinal pool) {
  static Watcher& watcher = *new Watcher(std::move(stream), std::move(pool));
  caching::attachAllocatorTraceTracker(
      [](const caching::TraceEntry& entry) { watcher.on_event(entry); });
  device::observe_calls(
      [](const char* call, void* context) { return static_cast<Watcher*>(context)->on_call(call); },
      &watcher);
  return watcher;
}

void Watcher::start(const std::optional<Fault>& fault) {
  fault_ = fault;
  seen_ = {};
  on_ = true;
}

Watched Watcher::stop() {
  on_ = false;
  return std::move(seen_);
}

void Watcher::on_event(const caching::TraceEntry& entry) {
  if (!on_ || entry.action_ == Event::Action::SNAPSHOT) return;  // those are our own
  seen_.events.push_back({entry.action_, entry.action_ == Event::Action::OOM ? 0 : entry.addr_,
                          entry.size_, stream_(entry.stream_), pool_(entry.mempool_)});
}

int Watcher::on_call(std::string_view call) {
  // The out-of-memory message asks the management library (NVML), where it is there, by these.
  if (!on_ || call == "cudaGetDeviceProperties" || call == "cudaGetDriverEntryPointByVersion")
    return 0;
  if (!seen_.calls.empty() && seen_.calls.back().first == call) {
    ++seen_.calls.back().second;
  } else {
    seen_.calls.emplace_back(call, 1);
  }
  if (!fault_ || fault_->call != call || (seen_.faulted && !fault_->every)) return 0;
  seen_.faulted = true;
  return fault_->error;
}

}  // namespace slotgraph::conformance

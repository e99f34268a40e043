// What an operation makes the allocator do: its trace events, and the runtime calls.
#ifndef PROBES_CONFORMANCE_WATCHER_H_
#define PROBES_CONFORMANCE_WATCHER_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "probes/conformance/program.h"

namespace slotgraph::conformance {

struct Event {
  using Action = c10::cuda::CUDACachingAllocator::TraceEntry::Action;
  Action action = Action::ALLOC;
  std::uintptr_t address = 0;  // none for out of memory: the device's free bytes are its own
  std::size_t bytes = 0;
  int stream = 0;
  int pool = 0;
  auto operator<=>(const Event&) const = default;
};

struct Watched {
  std::vector<Event> events;
  std::vector<std::pair<std::string_view, std::uint64_t>> calls;  // in runs of one name
  bool faulted = false;                                           // a call was made to fail

  bool has(Event::Action action) const;
  std::uint64_t call_count() const;
};

// In how far the order of events is part of what is compared. The allocator keeps some of its
// blocks in hash tables whose keys are host addresses.
enum class Order {
  kExact,  // but for events of one kind in a row, which are sorted
  kNone,   // everything is sorted, calls too
};
std::string to_string(Watched watched, Order order);

// One in a process, which it watches until the end: a tracker cannot be detached. Streams and pools
// are given by their ordinals (program.h). Not thread-safe.
class Watcher {
 public:
  using StreamOrdinal = std::function<int(const void* handle)>;
  using PoolOrdinal = std::function<int(c10::MempoolId_t id)>;
  static Watcher& attach(StreamOrdinal stream, PoolOrdinal pool);

  void start(const std::optional<Fault>& fault);
  Watched stop();

 private:
  Watcher(StreamOrdinal stream, PoolOrdinal pool)
      : stream_(std::move(stream)), pool_(std::move(pool)) {}
  void on_event(const c10::cuda::CUDACachingAllocator::TraceEntry& entry);
  int on_call(std::string_view call);

  StreamOrdinal stream_;
  PoolOrdinal pool_;
  bool on_ = false;
  std::optional<Fault> fault_;
  Watched seen_;
};

}  // namespace slotgraph::conformance

#endif  // PROBES_CONFORMANCE_WATCHER_H_

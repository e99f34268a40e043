// The event log: one entry for every runtime call, in the order in which the calls were made.
#ifndef CORE_TRACE_EVENT_LOG_H_
#define CORE_TRACE_EVENT_LOG_H_

#include <array>
#include <cstdint>
#include <deque>
#include <string>

#include "core/trace/calls.h"

namespace slotgraph::trace {

struct LogEntry {
  std::uint64_t sequence = 0;  // number of the call in this process, from 1
  Call call = Call::cudaMalloc;
  int thread = 0;                            // ordinal of the calling thread, from 0
  std::array<std::uint64_t, 4> arguments{};  // the first four, pointers as addresses
  int result = 0;                            // the cudaError_t that was returned
};

// `17 t0 cudaMalloc(0x7ff0, 512) = 2`; arguments in hexadecimal, unused ones printed as 0.
std::string to_string(const LogEntry& entry);

// Keeps the newest `limit` entries. Not thread-safe: the runtime calls it under its own lock.
class EventLog {
 public:
  void set_limit(std::size_t limit);
  void append(const LogEntry& entry);
  void clear() { entries_.clear(); }
  const std::deque<LogEntry>& entries() const { return entries_; }

 private:
  std::size_t limit_ = 1 << 16;
  std::deque<LogEntry> entries_;
};

}  // namespace slotgraph::trace

#endif  // CORE_TRACE_EVENT_LOG_H_

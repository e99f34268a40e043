#include "core/trace/event_log.h"

#include <fmt/format.h>

namespace slotgraph::trace {

std::string to_string(const LogEntry& entry) {
  return fmt::format("{} t{} {}({:#x}, {:#x}, {:#x}, {:#x}) = {}", entry.sequence, entry.thread,
                     call_name(entry.call), entry.arguments[0], entry.arguments[1],
                     entry.arguments[2], entry.arguments[3], entry.result);
}

void EventLog::set_limit(std::size_t limit) {
  limit_ = limit;
  while (entries_.size() > limit_) entries_.pop_front();
}

void EventLog::append(const LogEntry& entry) {
  if (limit_ == 0) return;
  if (entries_.size() == limit_) entries_.pop_front();
  entries_.push_back(entry);
}

}  // namespace slotgraph::trace

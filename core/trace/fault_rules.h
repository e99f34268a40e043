// Fault rules: which call of a function fails, with which error, once or from then on.
#ifndef CORE_TRACE_FAULT_RULES_H_
#define CORE_TRACE_FAULT_RULES_H_

#include <array>
#include <cstdint>
#include <optional>

#include "core/trace/calls.h"

namespace slotgraph::trace {

struct FaultRule {
  std::uint64_t nth = 1;    // which call from now on fails, from 1
  bool persistent = false;  // true: that call and every later one
  int error = 0;            // the cudaError_t to return instead of running the call
};

// Counts every call and decides which of them fail. At most one rule for each function; a new rule
// replaces the old one and counts from its own installation. Not thread-safe.
class FaultRules {
 public:
  void install(Call call, FaultRule rule);
  void clear();

  // Counts this call; returns the error if it has to fail.
  std::optional<int> on_call(Call call);

  std::uint64_t count(Call call) const { return counts_[static_cast<int>(call)]; }

 private:
  struct Installed {
    FaultRule rule;
    std::uint64_t base = 0;  // calls counted before the rule came
  };
  std::array<std::uint64_t, kCallCount> counts_{};
  std::array<std::optional<Installed>, kCallCount> rules_{};
};

}  // namespace slotgraph::trace

#endif  // CORE_TRACE_FAULT_RULES_H_

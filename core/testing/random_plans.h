// Random plans and capture calls, valid ones and ones with violations. A seed always gives the same
// value.
#ifndef CORE_TESTING_RANDOM_PLANS_H_
#define CORE_TESTING_RANDOM_PLANS_H_

#include <cstdint>
#include <span>

#include "core/plan/capture_call.h"
#include "core/plan/plan.h"
#include "core/random.h"

namespace slotgraph::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // From 0, below `limit` >= 1.
  int below(int limit) {
    return static_cast<int>(split_mix64(state_) % static_cast<std::uint64_t>(limit));
  }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }

  // Any element of a vector; null if there is none.
  template <typename Values>
  auto* element(Values& values) {
    return values.empty() ? nullptr : &values[below(static_cast<int>(values.size()))];
  }
  // Any element of a vector or array that has one.
  template <typename Values>
  const auto& pick(const Values& values) {
    return values[below(static_cast<int>(std::size(values)))];
  }

 private:
  std::uint64_t state_;
};

// A plan that make_plan makes, with at most 3 chunks, 3 variants and a few dozen frames.
Plan random_plan(Random& random);

// A call that captures such a plan in one of both arrangements; or one without slots, also without
// an order and with delayed weight gradients.
CaptureCall random_call(Random& random);

// A change that breaks `rule` in most values, though another rule may come first. An empty rule:
// a change that may break any, or none. Every change can be made to a value already changed.
template <typename Value>
struct Violation {
  const char* rule;
  void (*apply)(Random& random, Value& value);
};
std::span<const Violation<Plan>> plan_violations();
std::span<const Violation<CaptureCall>> call_violations();

}  // namespace slotgraph::testing

#endif  // CORE_TESTING_RANDOM_PLANS_H_

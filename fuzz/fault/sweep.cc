#include "fuzz/fault/sweep.h"

namespace slotgraph::fuzz {

void Sweep::add(const Injection& injection, Step::Next next) {
  steps_.push_back({injection, next});
  if (next == Step::Next::kNone) {
    ++totals_.fault_points;
  } else {
    ++totals_.walks;
  }
}

Step Sweep::take() {
  const Step step = steps_.front();
  steps_.pop_front();
  return step;
}

// A walk counts a fault point each time that something fires. The trial that fires nothing more is
// what proves that there is no further point; a trial that did not come to its end proves nothing.
void Sweep::took(const Step& step, int fired, bool ended) {
  const bool pair = step.injection.second > 0;
  const bool again = fired > (step.next == Step::Next::kMore && pair ? 1 : 0);
  switch (step.next) {
    case Step::Next::kNone:
      totals_.points_reached += again;
      return;
    case Step::Next::kBeyond:
      totals_.exhausted += ended && !again;
      return;
    case Step::Next::kMore:
      break;
  }
  totals_.fault_points += again;
  totals_.points_reached += again;
  if (!again) {
    totals_.exhausted += ended;
  } else if (pair && step.injection.second == deepest_) {
    ++totals_.cut;
  } else if (!totals_.stopped) {
    Step next = step;
    ++(pair ? next.injection.second : next.injection.nth);
    steps_.push_front(next);
  }
}

void Sweep::stop() {
  steps_.clear();
  totals_.stopped = true;
}

Sweep::Totals& Sweep::Totals::operator+=(const Totals& other) {
  fault_points += other.fault_points;
  points_reached += other.points_reached;
  walks += other.walks;
  exhausted += other.exhausted;
  cut += other.cut;
  stopped = stopped || other.stopped;
  return *this;
}

std::vector<Trial> run_sweep(const Operation& operation, const std::vector<Injection>& first) {
  Sweep sweep;
  for (const Injection& injection : first) sweep.add(injection, Step::Next::kMore);
  std::vector<Trial> trials;
  while (!sweep.empty()) {
    const Step step = sweep.take();
    trials.push_back(try_once(operation, step.injection));
    sweep.took(step, trials.back().fired, true);
  }
  return trials;
}

}  // namespace slotgraph::fuzz

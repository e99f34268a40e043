#include "core/trace/steps.h"

#include <atomic>

namespace slotgraph::trace {
namespace {

thread_local Phase current = Phase::outside;
std::atomic<StepListener*> the_listener{nullptr};

}  // namespace

Phase phase() { return current; }

PhaseScope::PhaseScope(Phase phase) : before_(current) { current = phase; }
PhaseScope::~PhaseScope() { current = before_; }

void set_step_listener(StepListener* listener) { the_listener = listener; }

void reached(Step step) {
  if (StepListener* const listener = the_listener.load(std::memory_order_relaxed))
    listener->reached(step);
}

}  // namespace slotgraph::trace

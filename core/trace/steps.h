// What the runtime is doing: phases, and named steps inside them, told to a listener.
//
// A listener that throws makes the step fail as if its own work had: so a failure can be planted
// between any two actions. Without a listener a step costs one load.
#ifndef CORE_TRACE_STEPS_H_
#define CORE_TRACE_STEPS_H_

#include <string_view>

namespace slotgraph::trace {

#define SLOTGRAPH_PHASES(X) \
  X(outside)                \
  X(call)                   \
  X(check)                  \
  X(save_state)             \
  X(restore_state)          \
  X(warm_up)                \
  X(layout)                 \
  X(capture_forward)        \
  X(capture_backward)       \
  X(boundary)               \
  X(switch_pool)            \
  X(rollback)               \
  X(replay_forward)         \
  X(replay_backward)        \
  X(teardown)

// In the order in which a call reaches them. The phase `teardown`, and the steps of modules and
// hooks, are told by whoever owns those: a harness wraps them.
#define SLOTGRAPH_STEPS(X)  \
  X(request_checked)        \
  X(state_saved)            \
  X(hook_before_warm_up)    \
  X(module_forward)         \
  X(module_backward)        \
  X(hook_after_warm_up)     \
  X(arena_allocation)       \
  X(staging)                \
  X(begin_capture)          \
  X(end_capture)            \
  X(owners_resolved)        \
  X(checkpoint_taken)       \
  X(owner_detach)           \
  X(before_setter)          \
  X(after_setter)           \
  X(adoption)               \
  X(switch_checked)         \
  X(rollback_detach)        \
  X(rollback_restore)       \
  X(rollback_adoption)      \
  X(capture_finished)       \
  X(before_forward_replay)  \
  X(after_forward_replay)   \
  X(before_backward_replay) \
  X(after_backward_replay)

#define SLOTGRAPH_ENUMERATOR(name) name,
#define SLOTGRAPH_NAME(name) #name,
enum class Phase : int { SLOTGRAPH_PHASES(SLOTGRAPH_ENUMERATOR) };
enum class Step : int { SLOTGRAPH_STEPS(SLOTGRAPH_ENUMERATOR) };
inline constexpr std::string_view kPhaseNames[] = {SLOTGRAPH_PHASES(SLOTGRAPH_NAME)};
inline constexpr std::string_view kStepNames[] = {SLOTGRAPH_STEPS(SLOTGRAPH_NAME)};
#undef SLOTGRAPH_NAME
#undef SLOTGRAPH_ENUMERATOR

constexpr std::string_view phase_name(Phase phase) { return kPhaseNames[static_cast<int>(phase)]; }
constexpr std::string_view step_name(Step step) { return kStepNames[static_cast<int>(step)]; }

// The innermost phase of this thread.
Phase phase();

class PhaseScope {
 public:
  explicit PhaseScope(Phase phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Phase before_;
};

class StepListener {
 public:
  virtual ~StepListener() = default;
  // Called on the thread that reached the step, before the step's work. May throw.
  virtual void reached(Step step) = 0;
};

// The process's listener, or none; it must outlive its use. Set it while nothing runs.
void set_step_listener(StepListener* listener);
void reached(Step step);

}  // namespace slotgraph::trace

#endif  // CORE_TRACE_STEPS_H_

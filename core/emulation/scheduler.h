// Queued device work and the order in which it runs.
//
// Work is a graph of tasks. A task may run once every task that it depends on has run: stream
// order, event waits and graph edges are all written as dependencies when a task is submitted, so
// nothing else can order two tasks.
#ifndef CORE_EMULATION_SCHEDULER_H_
#define CORE_EMULATION_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/emulation/random.h"

namespace slotgraph::emulation {

using TaskId = std::uint64_t;  // 0 means none; numbers grow with submission

// One device operation. Memory is addressed when the work runs, not when it is submitted.
struct Work {
  enum class Kind { kNothing, kHostFunction, kCopy, kFill, kTick };
  Kind kind = Kind::kNothing;
  void (*function)(void*) = nullptr;  // kHostFunction
  void* argument = nullptr;
  void* destination = nullptr;  // kCopy, kFill
  const void* source = nullptr;
  std::size_t bytes = 0;
  std::uint8_t byte = 0;
  // kCopy of pageable memory: the bytes at the call.
  std::shared_ptr<std::vector<std::uint8_t>> snapshot;
  std::shared_ptr<std::uint64_t> tick;     // kTick: receives the number of tasks run so far
  std::shared_ptr<const void> keep_alive;  // what must live until this has run
};

// Not thread-safe. next() and finish() bracket the running of a task, so that the owner can unlock
// in between.
class Scheduler {
 public:
  void set_seed(std::uint64_t seed);
  bool adversarial() const { return seed_ != 0; }

  TaskId submit(Work work, const std::vector<TaskId>& dependencies);
  bool is_pending(TaskId task) const { return task != 0 && tasks_.contains(task); }
  std::size_t pending() const { return tasks_.size(); }
  bool has_ready() const { return !ready_.empty(); }

  struct Running {
    TaskId id = 0;
    Work work;
  };
  // Takes one ready task: the oldest with seed 0, else one drawn from the seed. At least one must
  // be ready.
  Running next();
  void finish(TaskId task);
  std::uint64_t finished() const { return finished_; }

  // Forgets all work that has not run, and returns it: the caller decides when it dies.
  std::vector<Work> drop();

  // A draw that decides whether work runs although nobody waits for it; always false with seed 0.
  bool chance(std::uint64_t one_in) { return adversarial() && random_.below(one_in) == 0; }

 private:
  struct Task {
    Work work;
    std::size_t unmet = 0;
    std::vector<TaskId> dependents;
  };
  std::unordered_map<TaskId, Task> tasks_;
  std::vector<TaskId> ready_;  // ascending
  TaskId last_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t seed_ = 0;
  Random random_{0};
};

}  // namespace slotgraph::emulation

#endif  // CORE_EMULATION_SCHEDULER_H_

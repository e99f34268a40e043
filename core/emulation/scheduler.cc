#include "core/emulation/scheduler.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace slotgraph::emulation {

// Why this finds missing synchronisation: a task is ready once all that it depends on has run, and
// with a seed any ready task may be next. So every order that the dependencies allow can occur, and
// no other. If code lacks a dependency, some seeds run the two tasks the other way round. Tasks run
// one at a time: what two kernels do to each other while they overlap is not shown. A task depends
// on tasks with smaller numbers only, so there is no cycle, and while something is pending a task
// is ready or running. The choice depends on the seed and on the numbers alone, so equal calls in
// equal order repeat exactly.

void Scheduler::set_seed(std::uint64_t seed) {
  seed_ = seed;
  random_ = Random(seed);
}

TaskId Scheduler::submit(Work work, const std::vector<TaskId>& dependencies) {
  const TaskId id = ++last_;
  std::size_t unmet = 0;
  for (const TaskId dependency : dependencies) {
    const auto it = dependency == 0 ? tasks_.end() : tasks_.find(dependency);
    if (it == tasks_.end()) continue;
    it->second.dependents.push_back(id);
    ++unmet;
  }
  tasks_.emplace(id, Task{std::move(work), unmet, {}});
  if (unmet == 0) ready_.push_back(id);  // the newest number: the order stays ascending
  return id;
}

Scheduler::Running Scheduler::next() {
  const std::size_t pick = adversarial() ? random_.below(ready_.size()) : 0;
  const TaskId id = ready_[pick];
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(pick));
  return {id, std::move(tasks_.at(id).work)};
}

void Scheduler::finish(TaskId task) {
  const auto it = tasks_.find(task);
  if (it == tasks_.end()) return;  // dropped while it ran
  const std::vector<TaskId> dependents = std::move(it->second.dependents);
  tasks_.erase(it);
  ++finished_;
  for (const TaskId dependent : dependents) {
    if (--tasks_.at(dependent).unmet > 0) continue;
    ready_.insert(std::lower_bound(ready_.begin(), ready_.end(), dependent), dependent);
  }
}

std::vector<Work> Scheduler::drop() {
  std::map<TaskId, Task> ordered(std::make_move_iterator(tasks_.begin()),
                                 std::make_move_iterator(tasks_.end()));
  std::vector<Work> dropped;
  for (auto& [id, task] : ordered) dropped.push_back(std::move(task.work));
  tasks_.clear();
  ready_.clear();
  return dropped;
}

}  // namespace slotgraph::emulation

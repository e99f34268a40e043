// What looks at the replays of an execution besides their values: an oracle that is told what
// happens to every branch, and when.
#ifndef FUZZ_EXECUTE_REPLAY_WATCHER_H_
#define FUZZ_EXECUTE_REPLAY_WATCHER_H_

#include <string>
#include <vector>

#include "core/record/record.h"
#include "fuzz/execute/model.h"

namespace slotgraph::fuzz {

// One replay: the branch, and its place in the schedule.
struct Replay {
  int branch;
  Coordinate place;
};

class ReplayWatcher {
 public:
  virtual ~ReplayWatcher() = default;

  virtual void before_forward(const Replay&) {}
  virtual void after_forward(const Replay&, const Tensors& /*outputs*/) {}
  virtual void before_backward(const Replay&) {}
  // `gradients`: of each input, then of each trainable parameter; undefined where there is none.
  virtual void after_backward(const Replay&, const Tensors& /*gradients*/) {}
  // A frame ends without backward.
  virtual void release(const Replay&) {}
  // A backward event of a chunk without layers.
  virtual void empty_backward(int /*chunk*/, int /*physical_slot*/) {}
  virtual void end_step() {}

  // What is broken, in the execution of that name.
  virtual std::vector<Finding> findings(const std::string& execution) const = 0;
};

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_REPLAY_WATCHER_H_

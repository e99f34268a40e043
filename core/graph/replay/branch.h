// A captured branch and its replay, the same for every mode that has graphs.
#ifndef CORE_GRAPH_REPLAY_BRANCH_H_
#define CORE_GRAPH_REPLAY_BRANCH_H_

#include <c10/core/Event.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/device/device.h"
#include "core/graph/callables.h"
#include "core/graph/replay/flight.h"

namespace slotgraph {

// What capture leaves: graphs, and tensors over the static memory that they read and write. No
// autograd history.
struct CapturedBranch {
  std::unique_ptr<device::Graph> forward;
  std::unique_ptr<device::Graph> backward;  // null if nothing is differentiable
  Tensors inputs;                           // static places of Inputs::all()
  std::vector<bool> input_gradients;        // which inputs a gradient is returned for
  Tensors parameters;                       // trainable ones
  Tensors outputs;
  std::vector<bool> differentiable;  // of each output
  Tensors incoming;                  // static incoming gradient of each differentiable output
  Tensors gradients;           // of each input, then each parameter; undefined where there is none
  bool leading_stays = false;  // gradients[0] is returned in place, not cloned
};

// What the branches of one set share while they run. All checks and copies happen under its lock.
struct ReplayContext {
  explicit ReplayContext(std::vector<FlightPlan> flights) : flight(std::move(flights)) {}

  std::mutex mutex;
  FlightControl flight;
  // Replays share transients, so a replay on another stream waits for the last one.
  void order_after_last_replay();
  void note_replay();

 private:
  std::optional<c10::Event> last_;
};

class ReplayCallable final : public Callable {
 public:
  ReplayCallable(int index, CapturedBranch branch, std::shared_ptr<ReplayContext> context);

  Tensors forward(const Inputs& inputs) override;
  void release() override;

 private:
  struct Shared;  // outlives the callable while an autograd node refers to it
  friend struct ReplayNode;
  std::shared_ptr<Shared> shared_;
};

// Copies sources to targets of equal sizes, in stream order, as if all sources were read before any
// target is written. A source that is its target already (address and strides) is not copied.
void parallel_move(const Tensors& sources, const Tensors& targets);

}  // namespace slotgraph

#endif  // CORE_GRAPH_REPLAY_BRANCH_H_

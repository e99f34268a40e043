// A captured branch and its replay, the same for every mode that has graphs.
#ifndef CORE_GRAPH_REPLAY_BRANCH_H_
#define CORE_GRAPH_REPLAY_BRANCH_H_

#include <c10/core/Event.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/device/device.h"
#include "core/graph/callables.h"
#include "core/graph/replay/flight.h"
#include "core/graph/replay/lease.h"

namespace slotgraph {

// What capture leaves: graphs, and tensors over the static memory that they read and write. No
// autograd history.
struct CapturedBranch {
  std::unique_ptr<device::Graph> forward;
  std::unique_ptr<device::Graph> backward;  // null if nothing is differentiable
  GraphModule module;
  bool training = true;
  std::size_t positional = 0;         // inputs before the named ones
  std::vector<std::string> names;     // of the named inputs
  Tensors inputs;                     // static places of Inputs::all()
  std::vector<bool> input_gradients;  // which inputs a gradient is returned for
  Tensors parameters;                 // trainable ones
  // Of the module, and where each lay: the graphs read them there.
  Tensors state;
  std::vector<const void*> state_places;
  Tensors outputs;                   // undefined where the module returns none
  std::vector<bool> lent;            // which outputs lie in the frame's memory
  std::vector<bool> differentiable;  // of each output
  Tensors incoming;                  // static incoming gradient of each differentiable output
  Tensors gradients;           // of each input, then each parameter; undefined where there is none
  bool leading_stays = false;  // gradients[0] is returned in place, not cloned
  Ownership ownership;
};

// What the branches of one set share while they run. All checks and copies happen under its lock.
class ReplayContext {
 public:
  ReplayContext(std::vector<FlightPlan> flights, const Options& options);

  // Throws Error P10 if the thread is lending gradients.
  std::unique_lock<std::mutex> lock();
  // Replays share transients, so a replay on another stream waits for the last one.
  void order_after_last_replay();
  void note_replay();
  // Gives gradients to the options' borrower. Holds the lock.
  void lend_gradients(int branch, const Tensors& gradients);
  // An autograd node dies, on any thread, also inside a borrower.
  void end_flight(int branch, std::uint64_t generation);

  FlightControl flight;
  std::optional<LeaseBook> leases;  // in checking mode
  const std::function<void(int, const Tensors&)> borrower;

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> lending_;
  std::optional<c10::Event> last_;
};

class ReplayCallable final : public Callable {
 public:
  ReplayCallable(int index, CapturedBranch branch, std::shared_ptr<ReplayContext> context);

  Tensors forward(const Inputs& inputs, const ReplayOptions& options) override;
  Tensors static_inputs() const override;
  void release() override;
  void reset() override;
  const Ownership& ownership() const;

 private:
  struct Shared;  // outlives the callable while an autograd node refers to it
  friend struct ReplayNode;
  Tensors replay(const Tensors& given, const ReplayOptions& options, std::uint64_t& generation);
  std::shared_ptr<Shared> shared_;
};

// Copies sources to targets of equal sizes, in stream order, as if all sources were read before any
// target is written. A source that is its target already (address, strides and dtype) is not
// copied.
void parallel_move(const Tensors& sources, const Tensors& targets);

}  // namespace slotgraph

#endif  // CORE_GRAPH_REPLAY_BRANCH_H_

// The replay of a captured branch, the same for every mode that has graphs.
#ifndef CORE_GRAPH_REPLAY_REPLAY_CALLABLE_H_
#define CORE_GRAPH_REPLAY_REPLAY_CALLABLE_H_

#include <c10/core/Event.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/graph/callable.h"
#include "core/graph/captured_branch.h"
#include "core/graph/replay/flight.h"
#include "core/graph/replay/lease.h"

namespace slotgraph {

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

}  // namespace slotgraph

#endif  // CORE_GRAPH_REPLAY_REPLAY_CALLABLE_H_

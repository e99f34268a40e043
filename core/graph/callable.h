// What a capture of slot graphs is asked for, and what it returns: the contract of the runtime.
#ifndef CORE_GRAPH_CALLABLE_H_
#define CORE_GRAPH_CALLABLE_H_

#include <ATen/core/Generator.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDAStream.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/graph/graph_module.h"
#include "core/graph/mode.h"
#include "core/memory/region.h"

namespace slotgraph {

struct Options {
  Mode mode = Mode::kPlacement;
  // At least 1; from 2 on, runs are compared with each other, and caches that the first run fills
  // are told from survivors.
  int warm_up_iterations = 3;
  int restarts = 2;  // of placement, when a capture allocates otherwise than planned
  // Mode kCheckpoint: the variant that is captured first; none: the one with the smallest CP size.
  std::optional<int> canonical_variant = std::nullopt;
  bool unused_inputs = false;  // an input that requires grad may get none
  // Random generators besides the default one that modules draw from.
  std::vector<at::Generator> generators = {};
  // Around each module's warm-up, with its index.
  std::function<void(int module)> before_warm_up = nullptr;
  std::function<void(int module)> after_warm_up = nullptr;
  // If set, gradients of parameters are lent to it inside backward, on the stream of the replay,
  // and not returned to autograd: undefined where there is none, valid until it returns. It must
  // not call the set (P10).
  std::function<void(int branch, const Tensors& gradients)> borrow_parameter_gradients = nullptr;
  // Detects consumers that keep what they no longer own: when an output, leading-input gradient or
  // lent gradient ends its life, its bytes are poisoned, reading or writing it throws an error that
  // names P11, and a write to its bytes by other means is found when the next frame enters them. So
  // is, at the backward, a write to an output before it. Synchronises; for tests.
  bool checking = false;
};

// Where a replay runs.
struct ReplayOptions {
  // Another stream than the current one: it waits for the current stream, and the current stream
  // waits for `done`, which the caller records, or without one for the whole graph.
  std::optional<c10::cuda::CUDAStream> stream = std::nullopt;
  std::shared_ptr<c10::Event> done = nullptr;
};

// One branch. Not copyable; lives in its CallableSet.
class Callable {
 public:
  virtual ~Callable() = default;

  // Runs the branch on the current stream. Inputs are copied to their static places unless they are
  // there already; named ones are found by name, in any order. Outputs that are differentiable
  // carry an autograd node whose backward replays the backward graph, as the forward was replayed;
  // the gradient of the first positional input lies in the gradient arena until the end of the
  // rank's next backward event, all other gradients are fresh tensors. Missing incoming gradients
  // count as zeros.
  //
  // A slot-graph output is valid until the frame's backward, and only to be read: the frame may
  // have saved it, and autograd's own check for that does not see graphs. The frame is in flight
  // until its backward has been enqueued, its autograd node has died, or release() or reset().
  //
  // A module that has been set to another training mode since the capture runs eagerly.
  //
  // Throws Error before anything is copied: P01 a named input is missing, P05 another number of
  // inputs, or one that differs from the sample in sizes, dtype, device or layout, or another
  // device is current; P06 the frame or another one of its colour is in flight, P09 it was reset,
  // P10 a borrower calls, P13 a parameter or buffer has other memory than at the capture. A
  // backward throws: P03 a gradient of other sizes, P07 its flight is over or not the newest, P08
  // it would overwrite the gradient that the backward event before returned, P09, P13.
  Tensors forward(const Inputs& inputs) { return forward(inputs, {}); }
  virtual Tensors forward(const Inputs& inputs, const ReplayOptions& options) = 0;

  // The static places of the inputs, positional first: what is written there, while the frame is
  // not in flight, and then passed to forward, is not copied. Empty without graphs.
  virtual Tensors static_inputs() const = 0;

  // Ends the flight of a frame that has no backward to run.
  virtual void release() = 0;
  // Drops the branch's graphs and static tensors, in any order of branches; later calls throw P09.
  virtual void reset() = 0;
};

struct MemoryUse {
  // Of the call's private pools: arenas, staging, static inputs and transients.
  std::size_t reserved_bytes = 0;
  std::size_t live_bytes = 0;    // of these, in blocks that hold something
  std::size_t arena_bytes = 0;   // arenas alone
  std::size_t copied_bytes = 0;  // that the graphs of all branches copy to arenas, once each
};

// What a branch of a slot graph owns.
struct Ownership {
  // From its forward until its backward.
  std::vector<Region> flight;
  // From its backward until the end of the rank's next backward event.
  std::vector<Region> gradient;
};

class CallableSet {
 public:
  virtual ~CallableSet() = default;
  // By branch index: Plan::branch(variant, chunk, physical slot, layer). Throws Error P12: the plan
  // has no such branch.
  virtual Callable& at(int branch) = 0;
  // Tells the set about the backward event of a chunk without layers: it ends the life of a
  // returned gradient.
  virtual void note_empty_backward(int chunk, int physical_slot) = 0;
  // Ends a step: the gradient that the last backward event returned is no longer needed.
  virtual void end_step() = 0;
  // Ends all flights: every output and gradient handed out is invalid, later backwards of old nodes
  // throw P07.
  virtual void release() = 0;
  virtual MemoryUse memory() const = 0;
  // For oracles: all memory of the private pools, and whose it is. All else is dead between
  // replays. Empty without slot graphs.
  virtual std::vector<Region> pool_memory() const { return {}; }
  virtual Ownership ownership(int) const { return {}; }
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_CALLABLE_H_

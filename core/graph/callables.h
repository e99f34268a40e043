// Graphed callables: the contract of the slot runtime (design.md 5).
#ifndef CORE_GRAPH_CALLABLES_H_
#define CORE_GRAPH_CALLABLES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "core/graph/graph_module.h"
#include "core/order/pipeline_order.h"
#include "core/plan/plan.h"

namespace slotgraph {

enum class Mode {
  kEager,       // no graphs: the truth that the others are compared with
  kNative,      // graphs, one private pool for each branch: right in any order
  kPerVariant,  // PyTorch's arrangement: one private pool for each variant, right only in base
                // order
  kPlacement,   // slot graphs: survivors are born at planned addresses of shared arenas
};

struct Options {
  Mode mode = Mode::kPlacement;
  int warm_up_iterations =
      2;             // at least 2: a cache of the first iteration must not look like a survivor
  int restarts = 2;  // of the whole call when a capture allocates otherwise than planned
};

// One branch. Not copyable; lives in its CallableSet.
class Callable {
 public:
  virtual ~Callable() = default;

  // Runs the branch on the current stream. Inputs are copied to their static places unless they are
  // there already; they must have the sample's sizes, dtypes and device. Outputs that are
  // differentiable carry an autograd node whose backward replays the backward graph; the gradient
  // of the first positional input lies in the gradient arena until the end of the rank's next
  // backward event, all other gradients are fresh tensors.
  //
  // A slot-graph output is valid until the frame's backward. The frame is in flight until its
  // backward has been enqueued, its autograd node has died, or release() or reset(). Throws Error
  // before anything is copied: R01 inputs differ from the sample, R02 the frame or another one of
  // its colour is in flight.
  virtual Tensors forward(const Inputs& inputs) = 0;

  // Ends the flight of a frame that has no backward to run.
  virtual void release() = 0;
};

struct MemoryUse {
  std::size_t reserved_bytes =
      0;  // of the call's private pools: arenas, staging, static inputs and transients
  std::size_t arena_bytes = 0;  // arenas alone
};

class CallableSet {
 public:
  virtual ~CallableSet() = default;
  // By branch index: plan.branch(variant, chunk, physical slot, layer).
  virtual Callable& at(int branch) = 0;
  // Tells the set about the backward event of a chunk without layers: it ends the life of a
  // returned gradient.
  virtual void note_empty_backward(int chunk, int physical_slot) = 0;
  // Ends a step: the gradient that the last backward event returned is no longer needed.
  virtual void end_step() = 0;
  // Forgets all flights: every output and gradient handed out is invalid, later backwards of old
  // nodes throw R03.
  virtual void reset() = 0;
  virtual MemoryUse memory() const = 0;
};

// Captures every branch of the plan in `order` (one variant's order for ring_length microbatches;
// usually plan.base_order), variant after variant.
//
// modules: one for each variant and layer (field 5 of the slots). samples: one for each branch; all
// branches of a module have the same sizes, strides, dtypes and gradient wishes. Runs on the
// current stream, which must not be the default stream, and on the calling thread only.
//
// Throws Error before anything changes: P.. the plan, C01 counts of modules and samples, C02
// branches of a module differ, C03 an input is no dense CUDA tensor, C21 an input aliases a
// parameter or buffer, C04 default stream or autocast. After warm-up or capture has begun: W01
// warm-up wrote to an input or parameter, W02 a module replaced a parameter or buffer, W03 an
// allocation outlives its frame (a cache born in capture), W04 a frame does not settle: its
// captures allocate otherwise every time. On any failure process state, buffers and pools are as
// before.
std::unique_ptr<CallableSet> graph_callables(const std::vector<GraphModule>& modules,
                                             const std::vector<Inputs>& samples, const Order& order,
                                             const Plan& plan, const Options& options);

}  // namespace slotgraph

#endif  // CORE_GRAPH_CALLABLES_H_

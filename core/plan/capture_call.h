// What a capture call says, and every rule about it that can be decided before anything runs.
#ifndef CORE_PLAN_CAPTURE_CALL_H_
#define CORE_PLAN_CAPTURE_CALL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/order/entries.h"

namespace slotgraph {

// A plain value. Its slots are as a caller wrote them: any number of members each.
struct CaptureCall {
  struct Module {
    int object = 0;  // equal numbers: the same module object
    bool training = true;
    bool has_hooks = false;  // forward, forward-pre or backward hooks
  };
  struct SameLayers {
    int layers = 1;  // of every chunk
  };

  std::optional<OrderEntries> order;
  // Layers of each chunk: not given, one number for all, or a list.
  std::variant<std::monostate, SameLayers, std::vector<int>> layers;
  std::vector<Module> callables;  // of each chunk and layer
  int samples = 0;                // sample inputs: one for each chunk, microbatch and layer
  std::optional<int> keyword_samples;
  std::optional<std::vector<std::vector<std::int64_t>>> slots;  // their presence is slot mode
  int warm_up_iterations = 3;
  bool reuse_buffers = true;
  bool pool_given = false;
  // What the process says.
  bool autocast_caches_weights = false;
  bool native_allocator = true;  // else another allocator backend
  bool memory_pools = true;      // user memory pools are supported
  bool expandable_segments = false;
  bool settings_can_change = true;  // allocator settings can be set while the process runs
  // What its tensors say: of each kind of offence the place of the first, if there is one.
  struct Tensors {
    std::optional<std::string> buffer_requires_grad;  // C18
    std::optional<std::string> positional;            // C19: no static place can be had
    std::optional<std::string> named;                 // C20: the same
    std::optional<std::string> state_alias;           // C21: an input in the memory of module state
    std::optional<std::string> leading;               // C25: no first positional input
  };
  Tensors tensors;
};

// Terms: the whole entries of the order are its events; K is the largest chunk number among them
// and M = floor(floor(events / K) / 2). layers[c] are the layers of chunk c, prefix[c] those of all
// chunks before it. The frame of layer l of chunk c for its m-th microbatch has the index
// prefix[c] * M + m * layers[c] + l, which is also that of its sample and of its slot.
//
// Throws Error with the first broken rule, in this order:
// - OR1 an entry is neither an event nor a delayed weight gradient (entries.h), or a delayed weight
//   gradient of a chunk above K
// - C01 autocast caches weights
// - C02 some modules train, some do not
// - C03 events != K * M * 2, or none
// - C04 a delayed weight gradient without a list of layers, or with a chunk of other than one layer
// - C05 the list has not K numbers, all >= 0; one number below 0; or neither and twice the samples
//   are fewer than the events or no multiple of them
// - C06 callables != sum of layers; samples != that * M; keyword samples != samples, in this order.
//   Without an order only: samples != callables, keyword samples != samples
// - C07 with slots: the allocator is not the native one
// - C10 buffers are reused without an order
// - C11 buffers are reused outside training
// - and, with slots only,
// - C12 no order, or buffers are not reused, or not in training
// - OP5 a delayed weight gradient
// - C13 a pool is given
// - C14 no support for memory pools
// - C15 slots != samples
// - C16 a slot without exactly seven members
// - C17 a module has hooks
// - C18 a buffer requires grad
// - C19 a positional input, C20 a named input that can have no static place
// - C21 an input that shares memory with a parameter or buffer of any module
// - C22 expandable segments that cannot be switched off
// - C23 frames of the forward events != samples, or one twice: an index may reach another chunk's
// - OR1, OR2 as check_order of the events
// - C24 two frames of one warm-up group (field 5) with different module objects
// - C25 a sample without a first positional input
// - W11 no warm-up iteration
// - L02 a branch (field 2) twice in a frame (fields 1, 3, 4)
// - K09a a branch twice in a lockstep run: in neighbouring events that are equal in direction,
//   chunk of the plan (field 3), microbatch, physical slot (field 1) and layers. An event of a
//   chunk without layers ends a run
void check(const CaptureCall& call);

}  // namespace slotgraph

#endif  // CORE_PLAN_CAPTURE_CALL_H_

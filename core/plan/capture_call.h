// What a capture call says, and every rule about it that can be decided before anything runs.
#ifndef CORE_PLAN_CAPTURE_CALL_H_
#define CORE_PLAN_CAPTURE_CALL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/order/entries.h"

namespace slotgraph {

// A plain value. Its slots are as a caller wrote them: any number of members each.
struct CaptureCall {
  struct Module {
    int object = 0;  // equal numbers: the same module object
    bool training = true;
  };

  std::optional<OrderEntries> order;
  std::vector<int> layers;        // of each chunk
  std::vector<Module> callables;  // of each chunk and layer
  int samples = 0;                // sample inputs: one for each chunk, microbatch and layer
  std::optional<std::vector<std::vector<std::int64_t>>> slots;  // their presence is slot mode
  int warm_up_iterations = 3;
  // What the process says.
  bool autocast_caches_weights = false;
  bool native_allocator = true;  // else another allocator backend
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
// - C04 a delayed weight gradient with a chunk of other than one layer
// - C05 the layers are not K numbers, all >= 0
// - C06 callables != sum of layers; samples != that * M, in this order. Without an order only:
//   samples != callables
// - C07 with slots: the allocator is not the native one
// - and, with slots only,
// - C11 modules in evaluation mode
// - C12 no order
// - OP5 a delayed weight gradient
// - C15 slots != samples
// - C16 a slot without exactly seven members
// - C18 a buffer requires grad
// - C19 a positional input, C20 a named input that can have no static place
// - C21 an input that shares memory with a parameter or buffer of any module
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

// Orders in the general form of a capture call, and the features that slots forbid.
//
// An entry is a signed chunk number from 1; -c - 0.5 is the delayed weight gradient of chunk c.
#ifndef CORE_ORDER_ENTRIES_H_
#define CORE_ORDER_ENTRIES_H_

#include <vector>

#include "core/order/pipeline_order.h"

namespace slotgraph {

using OrderEntries = std::vector<double>;

// How a pipeline communicates.
struct Communication {
  bool overlap_p2p = false;  // sends and receives overlap with compute: stretches lifetimes only
  bool batch_p2p = false;
  bool overlap_p2p_in_warm_up_and_flush = false;
  bool overlap_expert_parallel = false;  // layers of a backward and the next forward interleave
  bool delayed_weight_gradient = false;  // a weight gradient of its own after each backward
};

// Throws Error if the combination cannot run (OP3) or cannot share slots (OP4 expert-parallel
// overlap, OP5 delayed weight gradients). Shape as in training_order.
void check_slot_communication(const PipelineShape& shape, const Communication& communication);

// What an entry is; if neither, it means nothing: zero, another fraction, not finite, or a chunk
// number beyond kMostEvents.
bool is_event(double entry);  // a signed chunk number
bool is_delayed_weight_gradient(double entry);

// The order for slots. Throws Error: OP5 a delayed weight gradient, OR1 an entry that is neither it
// nor a signed chunk number.
Order slot_order(const OrderEntries& entries);

// What expert-parallel overlap makes of an order: every layer is a chunk of its own, and a backward
// with the forward that follows it interleaves layer by layer, the forward's first. With delayed
// weight gradients one follows each backward, the last of its pair at the end of the pair. The
// warm-up of such an order is one forward longer. Throws Error OR1 for an entry that names no
// chunk.
OrderEntries expand_for_expert_overlap(const Order& order, const std::vector<int>& layers_per_chunk,
                                       bool delayed_weight_gradient);

}  // namespace slotgraph

#endif  // CORE_ORDER_ENTRIES_H_

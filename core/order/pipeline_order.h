// The order in which one pipeline rank runs its chunks.
//
// An order is a list of signed chunk numbers from 1: +c is the forward of chunk c-1 for its next
// microbatch, -c the backward. Forwards and backwards of a chunk are each in microbatch order
// (first in, first out).
#ifndef CORE_ORDER_PIPELINE_ORDER_H_
#define CORE_ORDER_PIPELINE_ORDER_H_

#include <vector>

namespace slotgraph {

using Order = std::vector<int>;

struct PipelineShape {
  int pipeline_size = 1;
  int rank = 0;
  int virtual_stages = 0;         // chunks of this rank; 0: no virtual stages, one chunk
  int microbatch_group_size = 0;  // with virtual stages only
  int chunks() const { return virtual_stages == 0 ? 1 : virtual_stages; }
  bool operator==(const PipelineShape&) const = default;
};

inline constexpr int kMostEvents = 1 << 24;  // of one order

// 1F1B or interleaved order for `microbatches` (>= 1). Throws Error: OP1 shape or number of
// events out of range, OP2 the preconditions P <= N <= M and M mod N = 0 or >= P of the interleaved
// schedule.
Order training_order(const PipelineShape& shape, int microbatches);

// Builds the order of a capture in the same way, but without the precondition OP2: its number of
// microbatches is the ring length, which need not be one that the scheduler would run.
Order capture_order(const PipelineShape& shape, int microbatches);

// Whether the schedulers run a step of that many microbatches (OP1 and OP2).
bool is_legal(const PipelineShape& shape, int microbatches);

// Forwards before the first backward: P - rank - 1, or 2 (P - rank - 1) + (V - 1) N with virtual
// stages, but at most `total`, the number of virtual microbatches.
int warm_up_forwards(const PipelineShape& shape, int total);

// One entry of an order with what it means.
struct OrderEvent {
  bool forward = true;
  int chunk = 0;       // from 0
  int microbatch = 0;  // from 0
  bool operator==(const OrderEvent&) const = default;
};
std::vector<OrderEvent> events(const Order& order);

// Any order that a capture or a step may run: each of `chunks` chunks equally often in both
// directions (OR1: length, zero, chunk out of range, counts) and no backward before its forward
// (OR2). Throws Error with the first broken rule.
void check_order(const Order& order, int chunks);

// Most microbatches of each chunk that are in flight at once: forwarded, not yet back-propagated.
// Their maximum is the ring that the order needs. The order must hold check_order.
std::vector<int> peak_outstanding(const Order& order, int chunks);

}  // namespace slotgraph

#endif  // CORE_ORDER_PIPELINE_ORDER_H_

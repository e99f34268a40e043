// The order in which one pipeline rank runs its chunks (planner.md 1).
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
};

// 1F1B or interleaved order for `microbatches` (>= 1). Throws Error: O01 shape out of range, O02
// the preconditions P <= N <= M and M mod N = 0 or >= P of the interleaved schedule.
Order training_order(const PipelineShape& shape, int microbatches);

// One entry of an order with what it means.
struct OrderEvent {
  bool forward = true;
  int chunk = 0;       // from 0
  int microbatch = 0;  // from 0
};
std::vector<OrderEvent> events(const Order& order);

}  // namespace slotgraph

#endif  // CORE_ORDER_PIPELINE_ORDER_H_

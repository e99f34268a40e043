// Orders in the general form of a capture call.
//
// An entry is a signed chunk number from 1; -c - 0.5 is the delayed weight gradient of chunk c.
#ifndef CORE_ORDER_ENTRIES_H_
#define CORE_ORDER_ENTRIES_H_

#include <vector>

#include "core/order/pipeline_order.h"

namespace slotgraph {

using OrderEntries = std::vector<double>;

// What an entry is; if neither, it means nothing: zero, another fraction, not finite, or a chunk
// number beyond kMostEvents.
bool is_event(double entry);  // a signed chunk number
bool is_delayed_weight_gradient(double entry);

}  // namespace slotgraph

#endif  // CORE_ORDER_ENTRIES_H_

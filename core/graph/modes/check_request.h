// What can be refused before anything runs.
#ifndef CORE_GRAPH_MODES_CHECK_REQUEST_H_
#define CORE_GRAPH_MODES_CHECK_REQUEST_H_

#include "core/graph/modes/request.h"

namespace slotgraph {

// Throws Error: what check(CaptureCall), core/plan and core/layout say of a request, and W07 to
// W10.
void check_request(const CaptureRequest& request);

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODES_CHECK_REQUEST_H_

// The warm-up of a whole call.
#ifndef CORE_GRAPH_MODES_WARM_UP_ALL_H_
#define CORE_GRAPH_MODES_WARM_UP_ALL_H_

#include <vector>

#include "core/graph/modes/request.h"
#include "core/graph/warmup/warm_up.h"

namespace slotgraph {

// The profile of every module, from its first branch's sample; the allocator's cache is empty
// afterwards. Throws Error as warm_up.
std::vector<BranchProfile> warm_up_all(const CaptureRequest& request, FrameKind kind);

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODES_WARM_UP_ALL_H_

#include "core/graph/modes/request.h"

#include <algorithm>

namespace slotgraph {

std::vector<int> branches_of(const CaptureRequest& request, const OrderEvent& event, int variant) {
  const Plan& plan = request.plan;
  std::vector<int> branches;
  for (int layer = 0; layer < plan.layers_per_chunk[event.chunk]; ++layer)
    branches.push_back(plan.branch(variant, event.chunk, plan.slot_of(event.microbatch), layer));
  if (!event.forward) std::reverse(branches.begin(), branches.end());
  return branches;
}

void walk_variant(const CaptureRequest& request, int variant,
                  const std::function<void(int)>& forward,
                  const std::function<void(int)>& backward) {
  for (const OrderEvent& event : events(request.order)) {
    for (const int branch : branches_of(request, event, variant))
      (event.forward ? forward : backward)(branch);
  }
}

}  // namespace slotgraph

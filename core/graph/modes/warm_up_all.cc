#include "core/graph/modes/warm_up_all.h"

#include <c10/cuda/CUDACachingAllocator.h>

namespace slotgraph {

std::vector<BranchProfile> warm_up_all(const CaptureRequest& request, FrameKind kind) {
  std::vector<BranchProfile> profiles;
  for (int module = 0; module < static_cast<int>(request.modules.size()); ++module) {
    profiles.push_back(
        warm_up(request.modules[module], request.sample_of(module), module, request.options, kind));
  }
  c10::cuda::CUDACachingAllocator::emptyCache();
  return profiles;
}

}  // namespace slotgraph

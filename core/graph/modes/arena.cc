// Sharing mode `arena` (runtime.md 4, 9.2): the reference by copying.
#include "core/graph/modes/slot_capture.h"
#include "core/graph/warmup/warm_up.h"

namespace slotgraph {

std::unique_ptr<CallableSet> make_arena(const CaptureRequest& request) {
  const std::vector<BranchProfile> profiles = warm_up_all(request, Watch::kSavedTensors);
  const std::vector<bool> copied(profiles.size(), true);
  SlotCapture capture(request, profiles, copied);
  capture.capture_variant_major();
  return capture.finish();
}

}  // namespace slotgraph

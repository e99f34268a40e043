// Sharing mode `arena`: the reference by copying.
#include "core/graph/modes/modes.h"
#include "core/graph/modes/slot_capture.h"
#include "core/graph/modes/warm_up_all.h"

namespace slotgraph {

std::unique_ptr<CallableSet> make_arena(const CaptureRequest& request) {
  const std::vector<BranchProfile> profiles = warm_up_all(request, FrameKind::kCopied);
  SlotCapture capture(request, profiles);
  capture.capture_variant_major();
  return capture.finish();
}

}  // namespace slotgraph

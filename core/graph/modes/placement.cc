// Sharing mode `placement`: survivors are born in shared arenas, transients share one pool.
#include <fmt/format.h>

#include "core/graph/modes/modes.h"
#include "core/graph/modes/slot_capture.h"
#include "core/graph/modes/warm_up_all.h"

namespace slotgraph {
namespace {

// Variants of one layer share a layout, so they are copied together. The callbacks around the
// warm-up have had their turn.
void copy_layer(const CaptureRequest& request, int layer, std::vector<BranchProfile>& profiles) {
  Options quiet = request.options;
  quiet.before_warm_up = nullptr;
  quiet.after_warm_up = nullptr;
  for (int module = 0; module < request.plan.modules(); ++module) {
    if (request.plan.layer_of_module(module) != layer) continue;
    profiles[module] = warm_up(request.modules[module], request.sample_of(module), module, quiet,
                               FrameKind::kCopied);
  }
}

}  // namespace

std::unique_ptr<CallableSet> make_placement(const CaptureRequest& request) {
  std::vector<BranchProfile> profiles = warm_up_all(request, FrameKind::kPlaced);
  for (int restarts = request.options.restarts;; --restarts) {
    try {
      SlotCapture capture(request, profiles);
      capture.capture_variant_major();
      return capture.finish();
    } catch (const ProfileMismatch& mismatch) {
      check_nothing_lives(request.modules[mismatch.module], *mismatch.recording, nullptr,
                          fmt::format("capture of module {}", mismatch.module));
      if (restarts <= 0) {
        copy_layer(request, request.plan.layer_of_module(mismatch.module), profiles);
        continue;
      }
      BranchProfile& profile = profiles[mismatch.module];
      (mismatch.forward ? profile.forward : profile.backward) = mismatch.merged;
    }
  }
}

}  // namespace slotgraph

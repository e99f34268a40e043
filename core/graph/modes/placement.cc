// Sharing mode `placement` (design.md 2): survivors are born in shared arenas, transients share one
// pool.
#include <fmt/format.h>

#include "core/graph/modes/slot_capture.h"
#include "core/graph/warmup/warm_up.h"

namespace slotgraph {
namespace {

// Variants of one layer share a layout, so they are copied together. The callbacks around the
// warm-up have had their turn.
void copy_layer(const CaptureRequest& request, int layer, std::vector<BranchProfile>& profiles,
                std::vector<bool>& copied) {
  Options quiet = request.options;
  quiet.before_warm_up = nullptr;
  quiet.after_warm_up = nullptr;
  for (int module = layer; module < static_cast<int>(profiles.size());
       module += request.plan.layers()) {
    const Inputs& sample = request.samples[request.first_branch(module)];
    profiles[module] =
        warm_up(request.modules[module], sample, module, quiet, Watch::kSavedTensors);
    copied[module] = true;
  }
}

}  // namespace

std::unique_ptr<CallableSet> make_placement(const CaptureRequest& request) {
  std::vector<BranchProfile> profiles = warm_up_all(request, Watch::kAllocations);
  std::vector<bool> copied(profiles.size());
  for (int restarts = request.options.restarts;; --restarts) {
    try {
      SlotCapture capture(request, profiles, copied);
      capture.capture_variant_major();
      return capture.finish();
    } catch (const ProfileMismatch& mismatch) {
      check_nothing_lives(request.modules[mismatch.module], *mismatch.recording, nullptr,
                          fmt::format("capture of module {}", mismatch.module));
      if (restarts <= 0) {
        copy_layer(request, mismatch.module % request.plan.layers(), profiles, copied);
        continue;
      }
      BranchProfile& profile = profiles[mismatch.module];
      (mismatch.forward ? profile.forward : profile.backward) = mismatch.merged;
    }
  }
}

}  // namespace slotgraph

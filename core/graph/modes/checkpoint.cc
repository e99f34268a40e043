// Sharing mode `checkpoint`: all variants of an event are captured before the next event, and
// between variants the pool is set back to what the first of them left.
#include "core/memory/checkpoint.h"

#include <fmt/format.h>

#include "core/graph/modes/modes.h"
#include "core/graph/modes/slot_capture.h"
#include "core/graph/modes/warm_up_all.h"
#include "core/order/branch_order.h"

namespace slotgraph {
namespace {

class CheckpointCapture {
 public:
  // With one variant there is nothing to set back, and no checkpoint is taken around a backward.
  CheckpointCapture(const CaptureRequest& request, const std::vector<BranchProfile>& profiles)
      : request_(request),
        capture_(
            request, profiles,
            request.plan.variants() > 1 ? LeakCheck::kByTheCaller : LeakCheck::kAfterEachCapture) {}

  std::unique_ptr<CallableSet> run() {
    for (const OrderEvent& event : events(request_.order)) {
      if (request_.plan.layers_per_chunk[event.chunk] == 0) continue;
      if (event.forward) {
        forward_group(event);
      } else {
        backward_group(event);
      }
    }
    return capture_.finish();
  }

 private:
  // The canonical variant, then the others ascending.
  std::vector<int> variants() const {
    const int count = request_.plan.variants();
    const int canonical = request_.options.canonical_variant.value_or(canonical_variant(count));
    std::vector<int> result{canonical};
    for (int variant = 0; variant < count; ++variant)
      if (variant != canonical) result.push_back(variant);
    return result;
  }

  void capture(const OrderEvent& event, int variant) {
    for (const int branch : branches_of(request_, event, variant)) {
      if (event.forward) {
        capture_.forward(branch);
      } else {
        capture_.backward(branch);
      }
    }
  }

  // Owners of earlier checkpoints that are still held own their blocks until a switch.
  Checkpoint boundary(std::initializer_list<const Checkpoint*> earlier) {
    settle(capture_.pool());
    std::vector<c10::Storage> roots = capture_.roots();
    for (const Checkpoint* const checkpoint : earlier) {
      for (const auto& [address, owner] : checkpoint->owners) roots.push_back(owner);
    }
    return take_checkpoint(capture_.pool(), roots);
  }

  void set_back(const Checkpoint& current, const Checkpoint& target, const OrderEvent& event,
                int variant, const char* what) {
    switch_pool(capture_.pool(), current, target,
                fmt::format("{} of chunk {}, microbatch {}, after variant {}: {}",
                            event.forward ? "forward" : "backward", event.chunk, event.microbatch,
                            variant, what));
  }

  // What the first variant's forward leaves stays until its backward; the others may only add
  // transients, which the switch removes.
  void forward_group(const OrderEvent& event) {
    std::optional<Checkpoint> post;
    for (const int variant : variants()) {
      capture(event, variant);
      if (!post) {
        post = boundary({});
      } else {
        set_back(boundary({&*post}), *post, event, variant, "to the state after the first variant");
      }
    }
  }

  // Every variant starts from the state before the event, and ends at that after the first one.
  void backward_group(const OrderEvent& event) {
    if (request_.plan.variants() == 1) {
      capture(event, 0);
      return;
    }
    const Checkpoint pre = boundary({});
    std::optional<Checkpoint> post;
    bool at_pre = true;
    for (const int variant : variants()) {
      if (!at_pre) set_back(*post, pre, event, variant, "to the state before the event");
      capture(event, variant);
      if (!post) {
        post = boundary({&pre});
        set_back(*post, pre, event, variant, "to the state before the event");
        continue;
      }
      set_back(boundary({&pre, &*post}), *post, event, variant,
               "to the state after the first variant");
      at_pre = false;
    }
  }

  const CaptureRequest& request_;
  SlotCapture capture_;
};

}  // namespace

std::unique_ptr<CallableSet> make_checkpoint(const CaptureRequest& request) {
  const std::vector<BranchProfile> profiles = warm_up_all(request, FrameKind::kCopied);
  return CheckpointCapture(request, profiles).run();
}

}  // namespace slotgraph

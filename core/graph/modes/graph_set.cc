#include "core/graph/modes/request.h"

namespace slotgraph {

void walk_variant(const CaptureRequest& request, int variant,
                  const std::function<void(int)>& forward,
                  const std::function<void(int)>& backward) {
  const Plan& plan = request.plan;
  for (const OrderEvent& event : events(request.order)) {
    const int slot = event.microbatch % plan.ring_length;
    const int layers = plan.layers_per_chunk[event.chunk];
    for (int i = 0; i < layers; ++i) {
      const int layer = event.forward ? i : layers - 1 - i;
      (event.forward ? forward : backward)(plan.branch(variant, event.chunk, slot, layer));
    }
  }
}

GraphSet::GraphSet(std::vector<CapturedBranch> branches, std::vector<FlightPlan> flights,
                   std::vector<std::shared_ptr<PrivatePool>> pools, std::size_t arena_bytes)
    : pools_(std::move(pools)),
      context_(std::make_shared<ReplayContext>(std::move(flights))),
      arena_bytes_(arena_bytes) {
  for (std::size_t i = 0; i < branches.size(); ++i) {
    callables_.push_back(
        std::make_unique<ReplayCallable>(static_cast<int>(i), std::move(branches[i]), context_));
  }
}

void GraphSet::note_empty_backward(int, int) {
  const std::lock_guard lock(context_->mutex);
  context_->flight.end_gradient_life();
}

void GraphSet::end_step() {
  const std::lock_guard lock(context_->mutex);
  context_->flight.end_gradient_life();
}

void GraphSet::reset() {
  const std::lock_guard lock(context_->mutex);
  context_->flight.reset();
}

MemoryUse GraphSet::memory() const {
  MemoryUse use;
  for (const auto& pool : pools_) use.reserved_bytes += pool->reserved_bytes();
  use.arena_bytes = arena_bytes_;
  return use;
}

}  // namespace slotgraph

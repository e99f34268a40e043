#include "core/graph/modes/graph_set.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/memory/pool_topology.h"

namespace slotgraph {

void check_branch(int branch, std::size_t branches) {
  if (branch >= 0 && static_cast<std::size_t>(branch) < branches) return;
  throw Error(Error::kContract,
              {"P12", fmt::format("branch {}", branch), "no branch of the plan",
               fmt::format("0 to {}", branches - 1), "capture a plan that has it"});
}

GraphSet::GraphSet(const Options& options, std::vector<CapturedBranch> branches,
                   std::vector<FlightPlan> flights, std::vector<std::shared_ptr<PrivatePool>> pools,
                   std::size_t arena_bytes, std::size_t copied_bytes)
    : pools_(std::move(pools)),
      context_(std::make_shared<ReplayContext>(std::move(flights), options)),
      arena_bytes_(arena_bytes),
      copied_bytes_(copied_bytes) {
  for (std::size_t i = 0; i < branches.size(); ++i) {
    callables_.push_back(
        std::make_unique<ReplayCallable>(static_cast<int>(i), std::move(branches[i]), context_));
  }
}

void GraphSet::note_empty_backward(int chunk, int physical_slot) {
  const auto lock = context_->lock();
  context_->flight.end_gradient_life();
  if (context_->leases) context_->leases->begin_backward({chunk, physical_slot});
}

void GraphSet::end_step() {
  const auto lock = context_->lock();
  context_->flight.end_gradient_life();
  if (context_->leases) context_->leases->end_step();
}

void GraphSet::release() {
  for (const auto& callable : callables_) callable->release();
  const auto lock = context_->lock();
  context_->flight.release();
}

MemoryUse GraphSet::memory() const {
  MemoryUse use;
  for (const auto& pool : pools_) {
    const PoolTopology topology = topology_of(*pool);
    use.reserved_bytes += topology.reserved_bytes();
    for (const auto& [address, bytes] : topology.live()) use.live_bytes += bytes;
  }
  use.arena_bytes = arena_bytes_;
  use.copied_bytes = copied_bytes_;
  return use;
}

std::vector<Region> GraphSet::pool_memory() const {
  std::vector<Region> regions;
  for (const auto& pool : pools_) {
    for (const PoolTopology::Segment& segment : topology_of(*pool).segments)
      regions.push_back(
          {static_cast<std::byte*>(const_cast<void*>(segment.address)), segment.bytes});
  }
  return regions;
}

Ownership GraphSet::ownership(int branch) const {
  return callables_.at(static_cast<std::size_t>(branch))->ownership();
}

}  // namespace slotgraph

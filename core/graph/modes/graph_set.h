// A set of captured branches over private pools: what every mode with graphs returns.
#ifndef CORE_GRAPH_MODES_GRAPH_SET_H_
#define CORE_GRAPH_MODES_GRAPH_SET_H_

#include <memory>
#include <vector>

#include "core/graph/replay/replay_callable.h"
#include "core/memory/private_pool.h"

namespace slotgraph {

// Throws Error P12 unless the set has the branch.
void check_branch(int branch, std::size_t branches);

class GraphSet final : public CallableSet {
 public:
  // `branches` and `flights`: one for each branch of the plan.
  GraphSet(const Options& options, std::vector<CapturedBranch> branches,
           std::vector<FlightPlan> flights, std::vector<std::shared_ptr<PrivatePool>> pools,
           std::size_t arena_bytes, std::size_t copied_bytes);

  Callable& at(int branch) override {
    check_branch(branch, callables_.size());
    return *callables_[static_cast<std::size_t>(branch)];
  }
  void note_empty_backward(int chunk, int physical_slot) override;
  void end_step() override;
  void release() override;
  MemoryUse memory() const override;
  std::vector<Region> pool_memory() const override;
  Ownership ownership(int branch) const override;

 private:
  std::vector<std::shared_ptr<PrivatePool>> pools_;  // die after the graphs
  std::shared_ptr<ReplayContext> context_;
  std::vector<std::unique_ptr<ReplayCallable>> callables_;
  std::size_t arena_bytes_;
  std::size_t copied_bytes_;
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODES_GRAPH_SET_H_

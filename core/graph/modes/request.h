// What every mode gets, checked already, and what the modes with graphs share.
#ifndef CORE_GRAPH_MODES_REQUEST_H_
#define CORE_GRAPH_MODES_REQUEST_H_

#include <functional>
#include <memory>
#include <vector>

#include "core/graph/callables.h"
#include "core/graph/replay/branch.h"
#include "core/memory/private_pool.h"

namespace slotgraph {

struct CaptureRequest {
  const std::vector<GraphModule>& modules;
  const std::vector<Inputs>& samples;
  const Order& order;
  const Plan& plan;
  const Options& options;

  const GraphModule& module_of(int branch) const {
    return modules[plan.slots[branch].warmup_alias_group];
  }
  // The first branch of a module; -1 if it has none.
  int first_branch(int module) const;
};

// What check(CaptureCall), core/plan and core/layout say of a request, and W07 to W10; all of it
// before anything runs.
void check_request(const CaptureRequest& request);

std::unique_ptr<CallableSet> make_eager(const CaptureRequest& request);
std::unique_ptr<CallableSet> make_native(const CaptureRequest& request);
std::unique_ptr<CallableSet> make_placement(const CaptureRequest& request);
std::unique_ptr<CallableSet> make_arena(const CaptureRequest& request);
std::unique_ptr<CallableSet> make_checkpoint(const CaptureRequest& request);

// Calls forward(branch) and backward(branch) for every branch of one variant in the request's
// order: layers ascending in a forward event, descending in a backward event.
void walk_variant(const CaptureRequest& request, int variant,
                  const std::function<void(int)>& forward,
                  const std::function<void(int)>& backward);

// Throws Error P12 unless the set has the branch.
void check_branch(int branch, std::size_t branches);

// A set of captured branches over private pools.
class GraphSet final : public CallableSet {
 public:
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

#endif  // CORE_GRAPH_MODES_REQUEST_H_

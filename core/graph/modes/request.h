// What every mode gets, checked already.
#ifndef CORE_GRAPH_MODES_REQUEST_H_
#define CORE_GRAPH_MODES_REQUEST_H_

#include <functional>
#include <vector>

#include "core/graph/callable.h"
#include "core/graph/graph_module.h"
#include "core/order/pipeline_order.h"
#include "core/plan/plan.h"

namespace slotgraph {

struct CaptureRequest {
  const std::vector<GraphModule>& modules;
  const std::vector<Inputs>& samples;
  const Order& order;
  const Plan& plan;
  const Options& options;

  const GraphModule& module_of(int branch) const { return modules[plan.module_of(branch)]; }
  // Of the module's first branch: all its branches take equal inputs (W07 to W10).
  const Inputs& sample_of(int module) const { return samples[plan.first_branch(module)]; }
};

// Calls forward(branch) and backward(branch) for every branch of one variant in the request's
// order: layers ascending in a forward event, descending in a backward event.
void walk_variant(const CaptureRequest& request, int variant,
                  const std::function<void(int)>& forward,
                  const std::function<void(int)>& backward);
// The branches of one event in one variant, in that order.
std::vector<int> branches_of(const CaptureRequest& request, const OrderEvent& event, int variant);

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODES_REQUEST_H_

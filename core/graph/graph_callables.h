// The call that captures: modules, samples and a plan become graphed callables.
#ifndef CORE_GRAPH_GRAPH_CALLABLES_H_
#define CORE_GRAPH_GRAPH_CALLABLES_H_

#include <memory>
#include <vector>

#include "core/graph/callable.h"
#include "core/graph/graph_module.h"
#include "core/order/pipeline_order.h"
#include "core/plan/plan.h"

namespace slotgraph {

// Captures every branch of the plan in `order` (one variant's order for ring_length microbatches;
// usually plan.base_order).
//
// modules: one for each variant and layer (field 5 of the slots). samples: one for each branch;
// they are neither written nor kept. Runs on a stream of its own and on the calling thread; the
// device is idle before and after.
//
// Throws Error before anything changes: G01 another call runs, C00 an empty module, PL.. the plan,
// OB2 no such canonical variant, what check(CaptureCall) throws, with C18 a buffer requires grad,
// C19, C20, C25 a positional, named, leading input that has no static place (plain_tensor.h), C21
// an input in the memory of a parameter or buffer; W07 to W10 branches of one module take other
// inputs, or inputs that alias otherwise. After warm-up or capture has begun: W01 to W06 and PM01
// (warm_up.h), W12, PS01, PS02 (process_state.h), L01 to L09 (core/layout), K01 to K07, K09
// (capture), PM02 an output in foreign memory, S0 to S7 (core/memory/checkpoint.h). On any failure
// process state, tensors and pools are as before.
std::unique_ptr<CallableSet> graph_callables(const std::vector<GraphModule>& modules,
                                             const std::vector<Inputs>& samples, const Order& order,
                                             const Plan& plan, const Options& options);

}  // namespace slotgraph

#endif  // CORE_GRAPH_GRAPH_CALLABLES_H_

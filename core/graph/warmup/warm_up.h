// Runs every module of a call once or more before anything is captured, and says what it saw.
#ifndef CORE_GRAPH_WARMUP_WARM_UP_H_
#define CORE_GRAPH_WARMUP_WARM_UP_H_

#include <string>

#include "core/graph/callable.h"
#include "core/graph/warmup/profile.h"

namespace slotgraph {

// Runs the module options.warm_up_iterations times, forward and backward, on the current stream and
// the calling thread, between the options' hooks; `module` is its index. The gradients' values are
// ones. What it writes outside of its own allocations is written back (write_log.h). The device is
// idle afterwards. The hook after it runs exactly once if the one before it did, also when the
// warm-up throws.
//
// Throws Error: W12 an input is module state after a run; W01, W02, W04, W06, K05, K06 as
// RunObserver; W03, W05 runs differ; PM01 a run of a placed frame after the first
// allocates something that outlives it and that the module does not hold.
BranchProfile warm_up(const GraphModule& module, const Inputs& sample, int index,
                      const Options& options, FrameKind kind);

// Every allocation of the recordings that lives is the module's own (GraphModule::held). Throws
// Error PM01; `where` names the run.
void check_nothing_lives(const GraphModule& module, const Recording& forward,
                         const Recording* backward, const std::string& where);

}  // namespace slotgraph

#endif  // CORE_GRAPH_WARMUP_WARM_UP_H_

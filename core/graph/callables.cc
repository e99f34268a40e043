#include "core/graph/callables.h"

#include "core/graph/modes/request.h"
#include "core/graph/state/process_state.h"

namespace slotgraph {
namespace {

std::unique_ptr<CallableSet> make(const CaptureRequest& request) {
  switch (request.options.mode) {
    case Mode::kPlacement:
      return make_placement(request);
    case Mode::kArena:
      return make_arena(request);
    case Mode::kCheckpoint:
      return make_checkpoint(request);
    case Mode::kEager:
      return make_eager(request);
    case Mode::kNative:
    case Mode::kPerVariant:
      return make_native(request);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<CallableSet> graph_callables(const std::vector<GraphModule>& modules,
                                             const std::vector<Inputs>& samples, const Order& order,
                                             const Plan& plan, const Options& options) {
  const CaptureRequest request{modules, samples, order, plan, options};
  const CaptureTurn turn;
  check_request(request);
  if (options.mode == Mode::kEager) return make_eager(request);
  const ProcessStateGuard state(modules, samples, options.generators);
  std::unique_ptr<CallableSet> result = make(request);
  state.check();
  return result;
}

}  // namespace slotgraph

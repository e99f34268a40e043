#include "core/graph/graph_callables.h"

#include <optional>

#include "core/graph/modes/check_request.h"
#include "core/graph/modes/modes.h"
#include "core/graph/state/process_state.h"
#include "core/trace/steps.h"

namespace slotgraph {
namespace {

// Saving and restoring are phases of their own.
class StateKept {
 public:
  explicit StateKept(const CaptureRequest& request) {
    const trace::PhaseScope phase(trace::Phase::save_state);
    state_.emplace(request.modules, request.samples, request.options.generators);
    trace::reached(trace::Step::state_saved);
  }
  ~StateKept() {
    const trace::PhaseScope phase(trace::Phase::restore_state);
    state_.reset();
  }
  StateKept(const StateKept&) = delete;
  StateKept& operator=(const StateKept&) = delete;
  void check() const { state_->check(); }

 private:
  std::optional<ProcessStateGuard> state_;
};

}  // namespace

std::unique_ptr<CallableSet> graph_callables(const std::vector<GraphModule>& modules,
                                             const std::vector<Inputs>& samples, const Order& order,
                                             const Plan& plan, const Options& options) {
  const CaptureRequest request{modules, samples, order, plan, options};
  const trace::PhaseScope call(trace::Phase::call);
  const CaptureTurn turn;
  {
    const trace::PhaseScope phase(trace::Phase::check);
    check_request(request);
    trace::reached(trace::Step::request_checked);
  }
  if (options.mode == Mode::kEager) return make_set(request);
  const StateKept state(request);
  std::unique_ptr<CallableSet> result = make_set(request);
  state.check();
  return result;
}

}  // namespace slotgraph

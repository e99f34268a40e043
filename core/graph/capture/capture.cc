#include "core/graph/capture/capture.h"

#include "core/trace/steps.h"

namespace slotgraph {
namespace {

// Ends an open capture when the captured work throws.
class CaptureGuard {
 public:
  explicit CaptureGuard(device::Graph& graph) : graph_(graph) {}
  ~CaptureGuard() {
    if (!done_) graph_.abandon();
  }
  CaptureGuard(const CaptureGuard&) = delete;
  CaptureGuard& operator=(const CaptureGuard&) = delete;
  void end() {
    done_ = true;
    graph_.end_capture();
  }

 private:
  device::Graph& graph_;
  bool done_ = false;
};

}  // namespace

Captured capture(const CaptureSite& site, std::optional<PlacementPlan> plan,
                 const std::function<void()>& work) {
  Captured result{device::make_graph(), nullptr};
  CaptureGuard guard(*result.graph);
  for (const at::Generator& generator : site.generators)
    result.graph->register_generator(generator);
  trace::reached(trace::Step::begin_capture);
  result.graph->begin_capture(site.pool);
  if (plan) {
    const Session session(*result.graph, std::move(*plan));
    result.recording = session.recording();
    work();
  } else {
    work();
  }
  trace::reached(trace::Step::end_capture);
  guard.end();
  return result;
}

}  // namespace slotgraph

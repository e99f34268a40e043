// Captures the forward and the backward of one branch.
#ifndef CORE_GRAPH_CAPTURE_CAPTURE_H_
#define CORE_GRAPH_CAPTURE_CAPTURE_H_

#include <functional>
#include <memory>
#include <optional>

#include "core/device/device.h"
#include "core/graph/graph_module.h"
#include "core/memory/placing_allocator.h"

namespace slotgraph {

struct Captured {
  std::unique_ptr<device::Graph> graph;
  std::shared_ptr<const Recording> recording;  // null without a placement plan
};

// Captures what `work` queues on the current stream into a graph of `pool`. With a plan, the
// placing allocator is installed after the capture has begun and removed before it ends. If `work`
// throws, the stream capture is ended on its own stream and every scope is closed before the
// exception leaves.
Captured capture(c10::MempoolId_t pool, std::optional<PlacementPlan> plan,
                 const std::function<void()>& work);

}  // namespace slotgraph

#endif  // CORE_GRAPH_CAPTURE_CAPTURE_H_

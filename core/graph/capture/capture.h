// Captures work into a graph, and undoes whatever was begun if the work throws.
#ifndef CORE_GRAPH_CAPTURE_CAPTURE_H_
#define CORE_GRAPH_CAPTURE_CAPTURE_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/device/device.h"
#include "core/graph/graph_module.h"
#include "core/memory/placing_allocator.h"

namespace slotgraph {

// Where a capture's memory comes from, and which random generators it may draw from besides the
// default one.
struct CaptureSite {
  c10::MempoolId_t pool;
  const std::vector<at::Generator>& generators;
};

struct Captured {
  std::unique_ptr<device::Graph> graph;
  std::shared_ptr<const Recording> recording;  // null without a placement plan
};

// Captures what `work` queues on the current stream. With a plan, the placing allocator is
// installed after the capture has begun and removed before it ends. If `work` throws, the stream
// capture is ended on its own stream and every scope is closed before the exception leaves.
Captured capture(const CaptureSite& site, std::optional<PlacementPlan> plan,
                 const std::function<void()>& work);

}  // namespace slotgraph

#endif  // CORE_GRAPH_CAPTURE_CAPTURE_H_

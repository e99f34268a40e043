#include "core/emulation/graph.h"

#include <utility>

#include "core/emulation/runtime.h"

namespace slotgraph::emulation {

// Like a host function, it may not call the runtime.
UserObject::~UserObject() {
  const bool before = std::exchange(this_thread().in_host_function, true);
  destroy(pointer);
  this_thread().in_host_function = before;
}

Node* Graph::add(Work work, cudaGraphNodeType type, std::vector<Node*> dependencies) {
  auto node = std::make_unique<Node>();
  node->work = std::move(work);
  node->type = type;
  node->dependencies = std::move(dependencies);
  node->index = nodes.size();
  nodes.push_back(std::move(node));
  return nodes.back().get();
}

std::vector<Node*> Graph::leaves() const {
  std::vector<bool> has_dependents(nodes.size());
  for (const auto& node : nodes) {
    for (const Node* dependency : node->dependencies) has_dependents[dependency->index] = true;
  }
  std::vector<Node*> result;
  for (const auto& node : nodes) {
    if (!has_dependents[node->index]) result.push_back(node.get());
  }
  return result;
}

ExecutableGraph::ExecutableGraph(const Graph& graph) : objects(graph.objects) {
  for (const auto& node : graph.nodes) {
    Step step{node->work, {}, true};
    for (const Node* dependency : node->dependencies) {
      step.dependencies.push_back(dependency->index);
      steps[dependency->index].is_leaf = false;
    }
    steps.push_back(std::move(step));
  }
}

}  // namespace slotgraph::emulation

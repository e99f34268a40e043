// Graphs, executable graphs, user objects and open captures.
#ifndef CORE_EMULATION_GRAPH_H_
#define CORE_EMULATION_GRAPH_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "core/emulation/scheduler.h"

namespace slotgraph::emulation {

struct Stream;

struct Node {
  Work work;
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  std::vector<Node*> dependencies;
  // Position in its graph. It is a topological order, since nodes come after what they wait for.
  std::size_t index = 0;
};

// Calls `destroy` when the last reference is gone (cudaUserObject).
struct UserObject {
  UserObject(void* pointer, cudaHostFn_t destroy) : pointer(pointer), destroy(destroy) {}
  ~UserObject();
  UserObject(const UserObject&) = delete;
  UserObject& operator=(const UserObject&) = delete;
  void* pointer;
  cudaHostFn_t destroy;
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::shared_ptr<UserObject>> objects;

  Node* add(Work work, cudaGraphNodeType type, std::vector<Node*> dependencies);
  // Nodes that no other node depends on.
  std::vector<Node*> leaves() const;
};

// What a launch runs: immutable, shared with launches that have not finished.
struct ExecutableGraph {
  struct Step {
    Work work;
    std::vector<std::size_t> dependencies;  // indices of earlier steps
    bool is_leaf = true;
  };
  explicit ExecutableGraph(const Graph& graph);
  std::vector<Step> steps;
  mutable TaskId newest_launch = 0;  // launches of one executable graph never overlap
  std::vector<std::shared_ptr<UserObject>> objects;
};

struct Capture {
  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  Stream* origin = nullptr;
  std::set<Stream*> streams;  // only for membership; never iterated into anything observable
  bool invalidated = false;
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
};

}  // namespace slotgraph::emulation

#endif  // CORE_EMULATION_GRAPH_H_

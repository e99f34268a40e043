// Capture and graphs.
#include <algorithm>

#include "core/emulation/entry.h"

namespace slotgraph::emulation {
namespace {

using trace::Call;

template <typename T>
void write(T* target, T value) {
  if (target) *target = value;
}

// The two-call convention of list queries: without an array the count; with one, as many as fit.
template <typename T>
void write_list(const std::vector<T>& found, T* array, std::size_t* count) {
  const std::size_t fitting = array ? std::min(found.size(), *count) : found.size();
  if (array) {
    std::copy_n(found.begin(), fitting, array);
    std::fill(array + fitting, array + *count, T{});
  }
  *count = fitting;
}

}  // namespace

SLOTGRAPH_API cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return entry(
      Call::cudaStreamBeginCapture,
      [=](Runtime& runtime, Runtime::Lock&) {
        Stream* const stream = runtime.find_stream(handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
        return runtime.begin_capture(stream, mode);
      },
      handle, static_cast<int>(mode));
}

SLOTGRAPH_API cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return entry(
      Call::cudaStreamEndCapture,
      [=](Runtime& runtime, Runtime::Lock&) {
        Stream* const stream = runtime.find_stream(handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (!graph) return cudaErrorInvalidValue;
        Graph* captured = nullptr;
        const cudaError_t result = runtime.end_capture(stream, &captured);
        *graph = reinterpret_cast<cudaGraph_t>(captured);
        return result;
      },
      handle, graph);
}

SLOTGRAPH_API cudaError_t cudaStreamIsCapturing(cudaStream_t handle,
                                                cudaStreamCaptureStatus* status) {
  return entry(
      Call::cudaStreamIsCapturing,
      [=](Runtime& runtime, Runtime::Lock&) {
        Stream* const stream = runtime.find_stream(handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (!status) return cudaErrorInvalidValue;
        if (const cudaError_t error = runtime.check_legacy(stream, false)) return error;
        *status = !stream->capture               ? cudaStreamCaptureStatusNone
                  : stream->capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                                 : cudaStreamCaptureStatusActive;
        return cudaSuccess;
      },
      handle, status);
}

// The dependency array stays valid until the next call on this stream. The graph may be asked for
// its nodes and may retain user objects, but belongs to the capture.
SLOTGRAPH_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle,
                                                   cudaStreamCaptureStatus* status,
                                                   unsigned long long* id, cudaGraph_t* graph,
                                                   const cudaGraphNode_t** dependencies,
                                                   const cudaGraphEdgeData** edges, size_t* count) {
  return entry(
      Call::cudaStreamGetCaptureInfo,
      [=](Runtime& runtime, Runtime::Lock&) {
        Stream* const stream = runtime.find_stream(handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (!status) return cudaErrorInvalidValue;
        if (const cudaError_t error = runtime.check_legacy(stream, false)) return error;
        if (!stream->capture) {
          *status = cudaStreamCaptureStatusNone;
          return cudaSuccess;
        }
        write(edges, static_cast<const cudaGraphEdgeData*>(nullptr));
        *status = stream->capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                               : cudaStreamCaptureStatusActive;
        write(id, stream->capture->id);
        write(graph, reinterpret_cast<cudaGraph_t>(stream->capture->graph.get()));
        write(dependencies, reinterpret_cast<const cudaGraphNode_t*>(stream->terminals.data()));
        write(count, stream->terminals.size());
        return cudaSuccess;
      },
      handle, status, id, graph);
}

SLOTGRAPH_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return entry(
      Call::cudaThreadExchangeStreamCaptureMode,
      [=](Runtime&, Runtime::Lock&) {
        if (!mode || *mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
        std::swap(*mode, this_thread().mode);
        return cudaSuccess;
      },
      mode);
}

SLOTGRAPH_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t handle,
                                               unsigned long long flags) {
  return entry(
      Call::cudaGraphInstantiate,
      [=](Runtime& runtime, Runtime::Lock&) {
        const auto it = runtime.graphs.find(handle);
        if (!executable || it == runtime.graphs.end()) return cudaErrorInvalidValue;
        constexpr unsigned long long known =
            cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUseNodePriority;
        if (flags & ~known) return cudaErrorNotSupported;
        auto created = std::make_shared<const ExecutableGraph>(*it->second);
        *executable =
            reinterpret_cast<cudaGraphExec_t>(const_cast<ExecutableGraph*>(created.get()));
        runtime.executables[*executable] = std::move(created);
        return cudaSuccess;
      },
      executable, handle, flags);
}

// Nothing has to be brought anywhere before the first launch.
SLOTGRAPH_API cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t handle) {
  return entry(
      Call::cudaGraphUpload,
      [=](Runtime& runtime, Runtime::Lock&) {
        if (!runtime.find_stream(handle)) return cudaErrorInvalidResourceHandle;
        return runtime.executables.contains(executable) ? cudaSuccess : cudaErrorInvalidValue;
      },
      executable, handle);
}

SLOTGRAPH_API cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  return entry(
      Call::cudaGraphLaunch,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        Stream* const stream = runtime.find_stream(handle);
        const auto it = runtime.executables.find(executable);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (it == runtime.executables.end()) return cudaErrorInvalidValue;
        return runtime.launch(lock, stream, it->second);
      },
      executable, handle);
}

// User objects whose last reference goes are destroyed after the lock is released: their
// destructors are host code.
SLOTGRAPH_API cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  std::unique_ptr<Graph> doomed;
  return entry(
      Call::cudaGraphDestroy,
      [&](Runtime& runtime, Runtime::Lock&) {
        const auto it = runtime.graphs.find(handle);
        if (it == runtime.graphs.end()) return cudaErrorInvalidValue;
        for (const auto& node : it->second->nodes) runtime.nodes.erase(node.get());
        doomed = std::move(it->second);
        runtime.graphs.erase(it);
        return cudaSuccess;
      },
      handle);
}

// A launch that has not finished keeps what it needs.
SLOTGRAPH_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  std::shared_ptr<const ExecutableGraph> doomed;
  return entry(
      Call::cudaGraphExecDestroy,
      [&](Runtime& runtime, Runtime::Lock&) {
        const auto it = runtime.executables.find(executable);
        if (it == runtime.executables.end()) return cudaErrorInvalidValue;
        if (const cudaError_t error = runtime.check_unsafe_call()) return error;
        doomed = std::move(it->second);
        runtime.executables.erase(it);
        return cudaSuccess;
      },
      executable);
}

SLOTGRAPH_API cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* array,
                                            size_t* count) {
  return entry(
      Call::cudaGraphGetNodes,
      [=](Runtime& runtime, Runtime::Lock&) {
        Graph* const graph = runtime.find_capturing_or_finished(handle);
        if (!graph || !count) return cudaErrorInvalidValue;
        std::vector<cudaGraphNode_t> found;
        for (const auto& node : graph->nodes)
          found.push_back(reinterpret_cast<cudaGraphNode_t>(node.get()));
        write_list(found, array, count);
        return cudaSuccess;
      },
      handle, array, count);
}

SLOTGRAPH_API cudaError_t cudaGraphGetEdges(cudaGraph_t handle, cudaGraphNode_t* from,
                                            cudaGraphNode_t* to, cudaGraphEdgeData* data,
                                            size_t* count) {
  return entry(
      Call::cudaGraphGetEdges,
      [=](Runtime& runtime, Runtime::Lock&) {
        Graph* const graph = runtime.find_capturing_or_finished(handle);
        if (!graph || !count || !from != !to) return cudaErrorInvalidValue;
        std::vector<cudaGraphNode_t> sources;
        std::vector<cudaGraphNode_t> targets;
        for (const auto& node : graph->nodes) {
          for (Node* dependency : node->dependencies) {
            sources.push_back(reinterpret_cast<cudaGraphNode_t>(dependency));
            targets.push_back(reinterpret_cast<cudaGraphNode_t>(node.get()));
          }
        }
        std::size_t both = *count;
        write_list(sources, from, &both);
        if (from && data) std::fill_n(data, both, cudaGraphEdgeData{});
        write_list(targets, to, count);
        return cudaSuccess;
      },
      handle, from, to, count);
}

SLOTGRAPH_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t handle, cudaGraphNodeType* type) {
  return entry(
      Call::cudaGraphNodeGetType,
      [=](Runtime& runtime, Runtime::Lock&) {
        const auto it = runtime.nodes.find(handle);
        if (it == runtime.nodes.end() || !type) return cudaErrorInvalidValue;
        *type = it->second->type;
        return cudaSuccess;
      },
      handle, type);
}

SLOTGRAPH_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t handle,
                                                       cudaGraphNode_t* array,
                                                       cudaGraphEdgeData* data, size_t* count) {
  return entry(
      Call::cudaGraphNodeGetDependencies,
      [=](Runtime& runtime, Runtime::Lock&) {
        const auto it = runtime.nodes.find(handle);
        if (it == runtime.nodes.end() || !count) return cudaErrorInvalidValue;
        std::vector<cudaGraphNode_t> found;
        for (Node* node : it->second->dependencies)
          found.push_back(reinterpret_cast<cudaGraphNode_t>(node));
        write_list(found, array, count);
        if (array && data) std::fill_n(data, *count, cudaGraphEdgeData{});
        return cudaSuccess;
      },
      handle, array, count);
}

// The handle keeps `references` references, which are released or moved to graphs one by one; this
// runtime counts them as one shared reference, so it takes a single initial reference only.
SLOTGRAPH_API cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer,
                                               cudaHostFn_t destroy, unsigned int references,
                                               unsigned int flags) {
  return entry(
      Call::cudaUserObjectCreate,
      [=](Runtime& runtime, Runtime::Lock&) {
        if (!object || !destroy || flags != cudaUserObjectNoDestructorSync)
          return cudaErrorInvalidValue;
        if (references != 1) return cudaErrorNotSupported;
        auto created = std::make_shared<UserObject>(pointer, destroy);
        *object = reinterpret_cast<cudaUserObject_t>(created.get());
        runtime.user_objects[*object] = std::move(created);
        return cudaSuccess;
      },
      object, pointer);
}

SLOTGRAPH_API cudaError_t cudaUserObjectRelease(cudaUserObject_t handle, unsigned int count) {
  std::shared_ptr<UserObject> doomed;
  return entry(
      Call::cudaUserObjectRelease,
      [&](Runtime& runtime, Runtime::Lock&) {
        const auto it = runtime.user_objects.find(handle);
        if (it == runtime.user_objects.end()) return cudaErrorInvalidValue;
        if (count != 1) return cudaErrorNotSupported;
        doomed = std::move(it->second);
        runtime.user_objects.erase(it);
        return cudaSuccess;
      },
      handle, count);
}

SLOTGRAPH_API cudaError_t cudaGraphRetainUserObject(cudaGraph_t handle,
                                                    cudaUserObject_t object_handle,
                                                    unsigned int count, unsigned int flags) {
  return entry(
      Call::cudaGraphRetainUserObject,
      [=](Runtime& runtime, Runtime::Lock&) {
        Graph* const graph = runtime.find_capturing_or_finished(handle);
        const auto it = runtime.user_objects.find(object_handle);
        if (!graph || it == runtime.user_objects.end()) return cudaErrorInvalidValue;
        if (count != 1) return cudaErrorNotSupported;
        graph->objects.push_back(it->second);
        if (flags & cudaGraphUserObjectMove) runtime.user_objects.erase(it);
        return cudaSuccess;
      },
      handle, object_handle, count, flags);
}

}  // namespace slotgraph::emulation

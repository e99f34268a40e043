// The CUDA runtime's functions, defined once more: libtorch_cuda, libc10_cuda and this program find
// these first. Each asks the observer, calls the real one, which the dynamic linker finds next, and
// is written to the event log. Linked with -rdynamic, before libcudart. Libraries that hold a
// runtime of their own (cuBLAS) are not seen.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <type_traits>

#include "core/device/cuda/placed_memory.h"
#include "core/device/cuda/runtime_calls.h"
#include "core/fatal.h"

namespace slotgraph::device::cuda {
namespace {

using trace::Call;

// The observer reads call stacks: who called is two frames above it.
#define SLOTGRAPH_INLINE [[gnu::always_inline]] inline

void* next(const char* name) {
  void* const symbol = dlsym(RTLD_NEXT, name);
  if (!symbol) fatal(std::string("the CUDA runtime has no ") + name);
  return symbol;
}

// The real function. Parameters need their exact types.
template <Call kCall, typename... Parameters>
cudaError_t real(Parameters... parameters) {
  static const auto function =
      reinterpret_cast<cudaError_t (*)(Parameters...)>(next(trace::call_name(kCall).data()));
  return function(parameters...);
}

template <typename T>
std::uint64_t as_argument(const T& value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<std::uintptr_t>(value);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return static_cast<std::uint64_t>(value);
  } else {
    return 0;
  }
}

template <typename... Parameters>
RuntimeCalls::Arguments as_arguments(const Parameters&... parameters) {
  std::array<std::uint64_t, sizeof...(parameters) + 4> all{as_argument(parameters)...};
  return {all[0], all[1], all[2], all[3]};
}

// Nothing may throw out of a C function.
template <typename Body, typename... Parameters>
SLOTGRAPH_INLINE cudaError_t call(Call name, const Body& body, Parameters... parameters) noexcept {
  RuntimeCalls& calls = RuntimeCalls::instance();
  cudaError_t result = calls.open(name);
  if (result == cudaSuccess) {
    result = body(parameters...);
  } else if (name != Call::cudaGetLastError && name != Call::cudaPeekAtLastError) {
    calls.remember(result);
  }
  return calls.close(name, as_arguments(parameters...), result);
}

template <Call kCall, typename... Parameters>
SLOTGRAPH_INLINE cudaError_t pass(Parameters... parameters) noexcept {
  return call(kCall, real<kCall, Parameters...>, parameters...);
}

// A call that makes (1) or ends (-1) one of what is counted.
template <Call kCall, typename... Parameters>
SLOTGRAPH_INLINE cudaError_t pass_counted(std::atomic<std::size_t>& count, int change,
                                          Parameters... parameters) noexcept {
  const cudaError_t result = pass<kCall>(parameters...);
  if (result == cudaSuccess) count += static_cast<std::size_t>(change);
  return result;
}

// Whether a call that is illegal in some captures would fail now.
bool is_unsafe() {
  if (RuntimeCalls::instance().captures == 0) return false;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  if (real<Call::cudaThreadExchangeStreamCaptureMode>(&mode) != cudaSuccess) return true;
  const bool relaxed = mode == cudaStreamCaptureModeRelaxed;
  (void)real<Call::cudaThreadExchangeStreamCaptureMode>(&mode);
  return !relaxed;
}

cudaError_t allocate_memory(void** pointer, std::size_t bytes) {
  PlacedMemory& memory = PlacedMemory::instance();
  RuntimeCalls& calls = RuntimeCalls::instance();
  int device = 0;
  cudaError_t result = real<Call::cudaGetDevice>(&device);
  if (result != cudaSuccess) return result;
  if (!memory.places() || !pointer || bytes == 0 || is_unsafe()) {
    result = real<Call::cudaMalloc>(pointer, bytes);
    if (result == cudaSuccess && *pointer) memory.note(device, *pointer, bytes);
  } else {
    *pointer = nullptr;
    result = memory.allocate(device, bytes, pointer);
    if (result != cudaSuccess) calls.remember(result);
  }
  if (result == cudaSuccess && *pointer) ++calls.segments;
  return result;
}

// Waits for the device, as the real one does: queued work may still use the memory.
cudaError_t release_memory(void* pointer) {
  PlacedMemory& memory = PlacedMemory::instance();
  RuntimeCalls& calls = RuntimeCalls::instance();
  cudaError_t result;
  if (!memory.owns(pointer) || is_unsafe()) {
    result = real<Call::cudaFree>(pointer);
    if (result == cudaSuccess) memory.forget(pointer);
  } else {
    result = real<Call::cudaDeviceSynchronize>();
    if (result == cudaSuccess) {
      result = memory.free(pointer).value_or(cudaErrorInvalidValue);
      if (result != cudaSuccess) calls.remember(result);
    }
  }
  if (result == cudaSuccess && pointer) --calls.segments;
  return result;
}

// A capture that fails may have ended all the same.
cudaError_t end_stream_capture(cudaStream_t stream, cudaGraph_t* graph) {
  RuntimeCalls& calls = RuntimeCalls::instance();
  const cudaError_t result = real<Call::cudaStreamEndCapture>(stream, graph);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const bool ended = real<Call::cudaStreamIsCapturing>(stream, &status) == cudaSuccess &&
                     status == cudaStreamCaptureStatusNone;
  if (ended && calls.captures > 0) --calls.captures;
  if (result == cudaSuccess && graph && *graph) ++calls.graphs;
  return result;
}

}  // namespace
}  // namespace slotgraph::device::cuda

using slotgraph::device::cuda::allocate_memory;
using slotgraph::device::cuda::call;
using slotgraph::device::cuda::end_stream_capture;
using slotgraph::device::cuda::next;
using slotgraph::device::cuda::pass;
using slotgraph::device::cuda::pass_counted;
using slotgraph::device::cuda::real;
using slotgraph::device::cuda::release_memory;
using slotgraph::device::cuda::RuntimeCalls;
using slotgraph::trace::Call;

#define SLOTGRAPH_API extern "C" __attribute__((visibility("default"))) cudaError_t
SLOTGRAPH_API cudaMalloc(void** dev_ptr, size_t size) {
  return call(Call::cudaMalloc, allocate_memory, dev_ptr, size);
}
SLOTGRAPH_API cudaFree(void* dev_ptr) { return call(Call::cudaFree, release_memory, dev_ptr); }
SLOTGRAPH_API cudaHostAlloc(void** host, size_t size, unsigned int flags) {
  return pass<Call::cudaHostAlloc>(host, size, flags);
}
SLOTGRAPH_API cudaMallocHost(void** ptr, size_t size) {
  return pass<Call::cudaMallocHost>(ptr, size);
}
SLOTGRAPH_API cudaFreeHost(void* ptr) { return pass<Call::cudaFreeHost>(ptr); }
SLOTGRAPH_API cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* ptr) {
  return pass<Call::cudaPointerGetAttributes>(attributes, ptr);
}
SLOTGRAPH_API cudaMemGetInfo(size_t* free, size_t* total) {
  return pass<Call::cudaMemGetInfo>(free, total);
}
SLOTGRAPH_API cudaMemcpy(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  return pass<Call::cudaMemcpy>(dst, src, count, kind);
}
SLOTGRAPH_API cudaMemcpyAsync(void* dst, const void* src, size_t count, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return pass<Call::cudaMemcpyAsync>(dst, src, count, kind, stream);
}
SLOTGRAPH_API cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device,
                                  size_t count, cudaStream_t stream) {
  return pass<Call::cudaMemcpyPeerAsync>(dst, dst_device, src, src_device, count, stream);
}
SLOTGRAPH_API cudaMemset(void* dev_ptr, int value, size_t count) {
  return pass<Call::cudaMemset>(dev_ptr, value, count);
}
SLOTGRAPH_API cudaMemsetAsync(void* dev_ptr, int value, size_t count, cudaStream_t stream) {
  return pass<Call::cudaMemsetAsync>(dev_ptr, value, count, stream);
}
SLOTGRAPH_API cudaGetDeviceCount(int* count) { return pass<Call::cudaGetDeviceCount>(count); }
SLOTGRAPH_API cudaGetDevice(int* device) { return pass<Call::cudaGetDevice>(device); }
SLOTGRAPH_API cudaSetDevice(int device) { return pass<Call::cudaSetDevice>(device); }
SLOTGRAPH_API cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  return pass<Call::cudaGetDeviceProperties>(prop, device);
}
SLOTGRAPH_API cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device) {
  return pass<Call::cudaDeviceGetAttribute>(value, attr, device);
}
SLOTGRAPH_API cudaDeviceSynchronize() { return pass<Call::cudaDeviceSynchronize>(); }
SLOTGRAPH_API cudaDeviceGetStreamPriorityRange(int* least_priority, int* greatest_priority) {
  return pass<Call::cudaDeviceGetStreamPriorityRange>(least_priority, greatest_priority);
}
SLOTGRAPH_API cudaDeviceCanAccessPeer(int* can_access_peer, int device, int peer_device) {
  return pass<Call::cudaDeviceCanAccessPeer>(can_access_peer, device, peer_device);
}
SLOTGRAPH_API cudaDriverGetVersion(int* driver_version) {
  return pass<Call::cudaDriverGetVersion>(driver_version);
}
SLOTGRAPH_API cudaRuntimeGetVersion(int* runtime_version) {
  return pass<Call::cudaRuntimeGetVersion>(runtime_version);
}
SLOTGRAPH_API cudaGetLastError() {
  return call(Call::cudaGetLastError, [] {
    return RuntimeCalls::instance().last_error(real<Call::cudaGetLastError>(), true);
  });
}
SLOTGRAPH_API cudaPeekAtLastError() {
  return call(Call::cudaPeekAtLastError, [] {
    return RuntimeCalls::instance().last_error(real<Call::cudaPeekAtLastError>(), false);
  });
}
SLOTGRAPH_API cudaStreamCreate(cudaStream_t* stream) {
  return pass<Call::cudaStreamCreate>(stream);
}
SLOTGRAPH_API cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return pass<Call::cudaStreamCreateWithFlags>(stream, flags);
}
SLOTGRAPH_API cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return pass<Call::cudaStreamCreateWithPriority>(stream, flags, priority);
}
SLOTGRAPH_API cudaStreamDestroy(cudaStream_t stream) {
  return pass<Call::cudaStreamDestroy>(stream);
}
SLOTGRAPH_API cudaStreamSynchronize(cudaStream_t stream) {
  return pass<Call::cudaStreamSynchronize>(stream);
}
SLOTGRAPH_API cudaStreamQuery(cudaStream_t stream) { return pass<Call::cudaStreamQuery>(stream); }
SLOTGRAPH_API cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return pass<Call::cudaStreamWaitEvent>(stream, event, flags);
}
SLOTGRAPH_API cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* capture_status) {
  return pass<Call::cudaStreamIsCapturing>(stream, capture_status);
}
SLOTGRAPH_API cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return pass_counted<Call::cudaStreamBeginCapture>(RuntimeCalls::instance().captures, 1, stream,
                                                    mode);
}
SLOTGRAPH_API cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call(Call::cudaStreamEndCapture, end_stream_capture, stream, graph);
}
SLOTGRAPH_API cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* capture_status,
                                       unsigned long long* id, cudaGraph_t* graph,
                                       const cudaGraphNode_t** dependencies,
                                       const cudaGraphEdgeData** edge_data,
                                       size_t* num_dependencies) {
  return pass<Call::cudaStreamGetCaptureInfo>(stream, capture_status, id, graph, dependencies,
                                              edge_data, num_dependencies);
}
SLOTGRAPH_API cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return pass<Call::cudaThreadExchangeStreamCaptureMode>(mode);
}
SLOTGRAPH_API cudaEventCreate(cudaEvent_t* event) {
  return pass_counted<Call::cudaEventCreate>(RuntimeCalls::instance().events, 1, event);
}
SLOTGRAPH_API cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return pass_counted<Call::cudaEventCreateWithFlags>(RuntimeCalls::instance().events, 1, event,
                                                      flags);
}
SLOTGRAPH_API cudaEventDestroy(cudaEvent_t event) {
  return pass_counted<Call::cudaEventDestroy>(RuntimeCalls::instance().events, -1, event);
}
SLOTGRAPH_API cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return pass<Call::cudaEventRecord>(event, stream);
}
SLOTGRAPH_API cudaEventQuery(cudaEvent_t event) { return pass<Call::cudaEventQuery>(event); }
SLOTGRAPH_API cudaEventSynchronize(cudaEvent_t event) {
  return pass<Call::cudaEventSynchronize>(event);
}
SLOTGRAPH_API cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return pass<Call::cudaEventElapsedTime>(ms, start, end);
}
SLOTGRAPH_API cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* user_data) {
  return pass<Call::cudaLaunchHostFunc>(stream, fn, user_data);
}
SLOTGRAPH_API cudaGraphInstantiate(cudaGraphExec_t* graph_exec, cudaGraph_t graph,
                                   unsigned long long flags) {
  return pass_counted<Call::cudaGraphInstantiate>(RuntimeCalls::instance().graphs, 1, graph_exec,
                                                  graph, flags);
}
SLOTGRAPH_API cudaGraphLaunch(cudaGraphExec_t graph_exec, cudaStream_t stream) {
  return pass<Call::cudaGraphLaunch>(graph_exec, stream);
}
SLOTGRAPH_API cudaGraphUpload(cudaGraphExec_t graph_exec, cudaStream_t stream) {
  return pass<Call::cudaGraphUpload>(graph_exec, stream);
}
SLOTGRAPH_API cudaGraphDestroy(cudaGraph_t graph) {
  return pass_counted<Call::cudaGraphDestroy>(RuntimeCalls::instance().graphs, -1, graph);
}
SLOTGRAPH_API cudaGraphExecDestroy(cudaGraphExec_t graph_exec) {
  return pass_counted<Call::cudaGraphExecDestroy>(RuntimeCalls::instance().graphs, -1, graph_exec);
}
SLOTGRAPH_API cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* num_nodes) {
  return pass<Call::cudaGraphGetNodes>(graph, nodes, num_nodes);
}
SLOTGRAPH_API cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                cudaGraphEdgeData* edge_data, size_t* num_edges) {
  return pass<Call::cudaGraphGetEdges>(graph, from, to, edge_data, num_edges);
}
SLOTGRAPH_API cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return pass<Call::cudaGraphNodeGetType>(node, type);
}
SLOTGRAPH_API cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                           cudaGraphEdgeData* edge_data, size_t* num_dependencies) {
  return pass<Call::cudaGraphNodeGetDependencies>(node, dependencies, edge_data, num_dependencies);
}
SLOTGRAPH_API cudaUserObjectCreate(cudaUserObject_t* object, void* ptr, cudaHostFn_t destroy,
                                   unsigned int initial_refcount, unsigned int flags) {
  return pass<Call::cudaUserObjectCreate>(object, ptr, destroy, initial_refcount, flags);
}
SLOTGRAPH_API cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  return pass<Call::cudaUserObjectRelease>(object, count);
}
SLOTGRAPH_API cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                        unsigned int count, unsigned int flags) {
  return pass<Call::cudaGraphRetainUserObject>(graph, object, count, flags);
}
SLOTGRAPH_API cudaDeviceEnablePeerAccess(int peer_device, unsigned int flags) {
  return pass<Call::cudaDeviceEnablePeerAccess>(peer_device, flags);
}
SLOTGRAPH_API cudaDeviceGetDefaultMemPool(cudaMemPool_t* mem_pool, int device) {
  return pass<Call::cudaDeviceGetDefaultMemPool>(mem_pool, device);
}
SLOTGRAPH_API cudaMallocAsync(void** dev_ptr, size_t size, cudaStream_t h_stream) {
  return pass<Call::cudaMallocAsync>(dev_ptr, size, h_stream);
}
SLOTGRAPH_API cudaFreeAsync(void* dev_ptr, cudaStream_t h_stream) {
  return pass<Call::cudaFreeAsync>(dev_ptr, h_stream);
}
SLOTGRAPH_API cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* dev_ptr) {
  return pass<Call::cudaIpcGetMemHandle>(handle, dev_ptr);
}
SLOTGRAPH_API cudaIpcOpenMemHandle(void** dev_ptr, cudaIpcMemHandle_t handle, unsigned int flags) {
  return pass<Call::cudaIpcOpenMemHandle>(dev_ptr, handle, flags);
}
SLOTGRAPH_API cudaIpcCloseMemHandle(void* dev_ptr) {
  return pass<Call::cudaIpcCloseMemHandle>(dev_ptr);
}
SLOTGRAPH_API cudaMemPoolGetAttribute(cudaMemPool_t mem_pool, cudaMemPoolAttr attr, void* value) {
  return pass<Call::cudaMemPoolGetAttribute>(mem_pool, attr, value);
}
SLOTGRAPH_API cudaMemPoolSetAttribute(cudaMemPool_t mem_pool, cudaMemPoolAttr attr, void* value) {
  return pass<Call::cudaMemPoolSetAttribute>(mem_pool, attr, value);
}
SLOTGRAPH_API cudaMemPoolSetAccess(cudaMemPool_t mem_pool, const cudaMemAccessDesc* desc_list,
                                   size_t count) {
  return pass<Call::cudaMemPoolSetAccess>(mem_pool, desc_list, count);
}
SLOTGRAPH_API cudaMemPoolTrimTo(cudaMemPool_t mem_pool, size_t min_bytes_to_keep) {
  return pass<Call::cudaMemPoolTrimTo>(mem_pool, min_bytes_to_keep);
}
SLOTGRAPH_API cudaGetDriverEntryPointByVersion(const char* symbol, void** func_ptr,
                                               unsigned int cudaVersion, unsigned long long flags,
                                               cudaDriverEntryPointQueryResult* driver_status) {
  return pass<Call::cudaGetDriverEntryPointByVersion>(symbol, func_ptr, cudaVersion, flags,
                                                      driver_status);
}
SLOTGRAPH_API cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func, void** args) {
  return pass<Call::cudaLaunchKernelExC>(config, func, args);
}
SLOTGRAPH_API cudaFuncSetAttribute(const void* func, cudaFuncAttribute attr, int value) {
  return pass<Call::cudaFuncSetAttribute>(func, attr, value);
}
SLOTGRAPH_API cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return pass<Call::cudaEventRecordWithFlags>(event, stream, flags);
}
SLOTGRAPH_API cudaHostRegister(void* ptr, size_t size, unsigned int flags) {
  return pass<Call::cudaHostRegister>(ptr, size, flags);
}
SLOTGRAPH_API cudaHostUnregister(void* ptr) { return pass<Call::cudaHostUnregister>(ptr); }
SLOTGRAPH_API cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                    void* user_data, unsigned int flags) {
  return pass<Call::cudaStreamAddCallback>(stream, callback, user_data, flags);
}
// The same function by its older name.
SLOTGRAPH_API cudaGraphInstantiateWithFlags(cudaGraphExec_t* graph_exec, cudaGraph_t graph,
                                            unsigned long long flags) {
  return cudaGraphInstantiate(graph_exec, graph, flags);
}
// What the compiler makes of <<<...>>>.
SLOTGRAPH_API __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                                 size_t shared, cudaStream_t stream) {
  using Launch = cudaError_t (*)(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
  static const auto launch = reinterpret_cast<Launch>(next("__cudaLaunchKernel"));
  return call(Call::cudaLaunchKernel, launch, kernel, grid, block, args, shared, stream);
}

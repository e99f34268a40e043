// Names of the CUDA runtime entry points that can be counted, logged and made to fail. The last
// ones, from cudaLaunchKernel on, only libtorch_cuda calls: the emulated runtime does not have
// them.
//
// A Call is the number of a fault point's function. Names and numbers are stable within one build;
// files carry names, never numbers.
#ifndef CORE_TRACE_CALLS_H_
#define CORE_TRACE_CALLS_H_

#include <cstddef>
#include <optional>
#include <string_view>

namespace slotgraph::trace {

#define SLOTGRAPH_RUNTIME_CALLS(X)       \
  X(cudaMalloc)                          \
  X(cudaFree)                            \
  X(cudaHostAlloc)                       \
  X(cudaMallocHost)                      \
  X(cudaFreeHost)                        \
  X(cudaPointerGetAttributes)            \
  X(cudaMemGetInfo)                      \
  X(cudaMemcpy)                          \
  X(cudaMemcpyAsync)                     \
  X(cudaMemcpyPeerAsync)                 \
  X(cudaMemset)                          \
  X(cudaMemsetAsync)                     \
  X(cudaGetDeviceCount)                  \
  X(cudaGetDevice)                       \
  X(cudaSetDevice)                       \
  X(cudaGetDeviceProperties)             \
  X(cudaDeviceGetAttribute)              \
  X(cudaDeviceSynchronize)               \
  X(cudaDeviceGetStreamPriorityRange)    \
  X(cudaDeviceCanAccessPeer)             \
  X(cudaDriverGetVersion)                \
  X(cudaRuntimeGetVersion)               \
  X(cudaGetLastError)                    \
  X(cudaPeekAtLastError)                 \
  X(cudaStreamCreate)                    \
  X(cudaStreamCreateWithFlags)           \
  X(cudaStreamCreateWithPriority)        \
  X(cudaStreamDestroy)                   \
  X(cudaStreamSynchronize)               \
  X(cudaStreamQuery)                     \
  X(cudaStreamWaitEvent)                 \
  X(cudaStreamIsCapturing)               \
  X(cudaStreamBeginCapture)              \
  X(cudaStreamEndCapture)                \
  X(cudaStreamGetCaptureInfo)            \
  X(cudaThreadExchangeStreamCaptureMode) \
  X(cudaEventCreate)                     \
  X(cudaEventCreateWithFlags)            \
  X(cudaEventDestroy)                    \
  X(cudaEventRecord)                     \
  X(cudaEventQuery)                      \
  X(cudaEventSynchronize)                \
  X(cudaEventElapsedTime)                \
  X(cudaLaunchHostFunc)                  \
  X(cudaGraphInstantiate)                \
  X(cudaGraphLaunch)                     \
  X(cudaGraphUpload)                     \
  X(cudaGraphDestroy)                    \
  X(cudaGraphExecDestroy)                \
  X(cudaGraphGetNodes)                   \
  X(cudaGraphGetEdges)                   \
  X(cudaGraphNodeGetType)                \
  X(cudaGraphNodeGetDependencies)        \
  X(cudaUserObjectCreate)                \
  X(cudaUserObjectRelease)               \
  X(cudaGraphRetainUserObject)           \
  X(cudaDeviceEnablePeerAccess)          \
  X(cudaDeviceGetDefaultMemPool)         \
  X(cudaMallocAsync)                     \
  X(cudaFreeAsync)                       \
  X(cudaIpcGetMemHandle)                 \
  X(cudaIpcOpenMemHandle)                \
  X(cudaIpcCloseMemHandle)               \
  X(cudaMemPoolGetAttribute)             \
  X(cudaMemPoolSetAttribute)             \
  X(cudaMemPoolSetAccess)                \
  X(cudaMemPoolTrimTo)                   \
  X(cudaGetDriverEntryPointByVersion)    \
  X(cudaLaunchKernel)                    \
  X(cudaLaunchKernelExC)                 \
  X(cudaFuncSetAttribute)                \
  X(cudaEventRecordWithFlags)            \
  X(cudaHostRegister)                    \
  X(cudaHostUnregister)                  \
  X(cudaStreamAddCallback)

enum class Call : int {
#define SLOTGRAPH_ENUMERATOR(name) name,
  SLOTGRAPH_RUNTIME_CALLS(SLOTGRAPH_ENUMERATOR)
#undef SLOTGRAPH_ENUMERATOR
};

inline constexpr std::string_view kCallNames[] = {
#define SLOTGRAPH_NAME(name) #name,
    SLOTGRAPH_RUNTIME_CALLS(SLOTGRAPH_NAME)
#undef SLOTGRAPH_NAME
};

inline constexpr int kCallCount = static_cast<int>(sizeof kCallNames / sizeof kCallNames[0]);

// Those of the emulated runtime come first.
inline constexpr int kEmulatedCallCount = static_cast<int>(Call::cudaLaunchKernel);

constexpr std::string_view call_name(Call call) { return kCallNames[static_cast<int>(call)]; }

// The call of that name, or nothing.
constexpr std::optional<Call> find_call(std::string_view name) {
  for (int i = 0; i < kCallCount; ++i) {
    if (kCallNames[i] == name) return static_cast<Call>(i);
  }
  return std::nullopt;
}

}  // namespace slotgraph::trace

#endif  // CORE_TRACE_CALLS_H_

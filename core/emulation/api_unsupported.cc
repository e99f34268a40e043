// Entry points that libtorch imports and this runtime does not emulate: they fail and are logged.
#include "core/emulation/entry.h"

namespace slotgraph::emulation {

#define SLOTGRAPH_UNSUPPORTED(name, ...)                                          \
  SLOTGRAPH_API cudaError_t name(__VA_ARGS__) {                                   \
    return entry(trace::Call::name,                                               \
                 [](Runtime&, Runtime::Lock&) { return cudaErrorNotSupported; }); \
  }

SLOTGRAPH_UNSUPPORTED(cudaDeviceEnablePeerAccess, int, unsigned int)
SLOTGRAPH_UNSUPPORTED(cudaDeviceGetDefaultMemPool, cudaMemPool_t*, int)
SLOTGRAPH_UNSUPPORTED(cudaMallocAsync, void**, size_t, cudaStream_t)
SLOTGRAPH_UNSUPPORTED(cudaFreeAsync, void*, cudaStream_t)
SLOTGRAPH_UNSUPPORTED(cudaIpcGetMemHandle, cudaIpcMemHandle_t*, void*)
SLOTGRAPH_UNSUPPORTED(cudaIpcOpenMemHandle, void**, cudaIpcMemHandle_t, unsigned int)
SLOTGRAPH_UNSUPPORTED(cudaIpcCloseMemHandle, void*)
SLOTGRAPH_UNSUPPORTED(cudaMemPoolGetAttribute, cudaMemPool_t, cudaMemPoolAttr, void*)
SLOTGRAPH_UNSUPPORTED(cudaMemPoolSetAttribute, cudaMemPool_t, cudaMemPoolAttr, void*)
SLOTGRAPH_UNSUPPORTED(cudaMemPoolSetAccess, cudaMemPool_t, const cudaMemAccessDesc*, size_t)
SLOTGRAPH_UNSUPPORTED(cudaMemPoolTrimTo, cudaMemPool_t, size_t)
SLOTGRAPH_UNSUPPORTED(cudaGetDriverEntryPointByVersion, const char*, void**, unsigned int,
                      unsigned long long, cudaDriverEntryPointQueryResult*)

}  // namespace slotgraph::emulation

// The end of a graph's handles, on every device.
#ifndef CORE_DEVICE_DESTROY_GRAPH_H_
#define CORE_DEVICE_DESTROY_GRAPH_H_

#include <cuda_runtime_api.h>

namespace slotgraph::device {

// Runs `undo` once more if it fails: a call may report the failure of earlier work.
template <typename Undo>
void twice(const Undo& undo) noexcept {
  for (int i = 0; i < 2 && undo() != cudaSuccess; ++i) (void)cudaGetLastError();
}

// Either may be null. A graph may die while somebody captures, on this thread or another: the
// runtime refuses that, and spoils the capture, unless this thread's capture mode is relaxed.
inline void destroy_graph(cudaGraphExec_t executable, cudaGraph_t graph) noexcept {
  if (!executable && !graph) return;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  twice([&] { return cudaThreadExchangeStreamCaptureMode(&mode); });
  if (executable) twice([&] { return cudaGraphExecDestroy(executable); });
  if (graph) twice([&] { return cudaGraphDestroy(graph); });
  twice([&] { return cudaThreadExchangeStreamCaptureMode(&mode); });
}

}  // namespace slotgraph::device

#endif  // CORE_DEVICE_DESTROY_GRAPH_H_

#include "core/device/host/work.h"

#include <ATen/record_function.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "core/emulation/control.h"

namespace slotgraph::device::host {
namespace {

void run_guarded(WorkItem& item) noexcept {
  // What the device does is no operator call of the program's.
  const at::DisableRecordFunctionGuard quiet;
  try {
    item.run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "device-side failure: {}\n", error.what());
    slotgraph_emulation_raise(cudaErrorAssert);
  }
}

void run_once(void* argument) {
  const std::unique_ptr<WorkItem> item(static_cast<WorkItem*>(argument));
  run_guarded(*item);
}

void run_captured(void* argument) { run_guarded(*static_cast<WorkItem*>(argument)); }

void destroy(void* argument) { delete static_cast<WorkItem*>(argument); }

}  // namespace

void submit(std::unique_ptr<WorkItem> item) {
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  C10_CUDA_CHECK(
      cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr));
  if (status == cudaStreamCaptureStatusNone) {
    C10_CUDA_CHECK(cudaLaunchHostFunc(stream, run_once, item.get()));
    item.release();
    return;
  }
  WorkItem* const raw = item.get();
  cudaUserObject_t owner = nullptr;
  C10_CUDA_CHECK(cudaUserObjectCreate(&owner, raw, destroy, 1, cudaUserObjectNoDestructorSync));
  item.release();
  C10_CUDA_CHECK(cudaGraphRetainUserObject(graph, owner, 1, cudaGraphUserObjectMove));
  C10_CUDA_CHECK(cudaLaunchHostFunc(stream, run_captured, raw));
}

}  // namespace slotgraph::device::host

// The boxed kernels behind dispatch key CUDA.
#ifndef CORE_DEVICE_HOST_FALLBACK_H_
#define CORE_DEVICE_HOST_FALLBACK_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace slotgraph::device::host {

// Infers output metadata, allocates outputs from the caching allocator and queues the CPU kernel as
// a work item.
void fallback(const c10::OperatorHandle& operation, torch::jit::Stack* stack);

// For operators whose outputs depend on data: waits for the current stream, runs the CPU kernel at
// once and copies its results to the device. A capture refuses the wait.
void synchronising_fallback(const c10::OperatorHandle& operation, torch::jit::Stack* stack);

}  // namespace slotgraph::device::host

#endif  // CORE_DEVICE_HOST_FALLBACK_H_

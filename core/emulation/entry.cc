#include "core/emulation/entry.h"

namespace slotgraph::emulation {

cudaError_t open_call(Runtime& runtime, trace::Call call) {
  const auto fault = runtime.faults.on_call(call);
  if (runtime.sticky != cudaSuccess) return runtime.sticky;
  if (this_thread().in_host_function) return cudaErrorNotPermitted;
  return fault ? static_cast<cudaError_t>(*fault) : cudaSuccess;
}

cudaError_t close_call(Runtime& runtime, trace::Call call,
                       const std::array<std::uint64_t, 4>& arguments, cudaError_t result) {
  ThreadState& thread = this_thread();
  if (thread.ordinal < 0) thread.ordinal = runtime.threads++;
  runtime.log.append({++runtime.sequence, call, thread.ordinal, arguments, result});
  const bool is_report = call == trace::Call::cudaGetLastError ||
                         call == trace::Call::cudaPeekAtLastError || result == cudaErrorNotReady;
  if (result != cudaSuccess && !is_report) thread.last_error = result;
  return result;
}

}  // namespace slotgraph::emulation

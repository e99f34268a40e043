#include "core/emulation/entry.h"

#include <atomic>

namespace slotgraph::emulation {

namespace {

std::atomic<Observer> observer_function{nullptr};
std::atomic<void*> observer_context{nullptr};

}  // namespace

void set_observer(Observer observer, void* context) {
  observer_context = context;
  observer_function = observer;
}

cudaError_t ask_observer(trace::Call call) {
  const Observer observer = observer_function.load(std::memory_order_acquire);
  if (!observer) return cudaSuccess;
  return static_cast<cudaError_t>(observer(trace::call_name(call).data(), observer_context));
}

cudaError_t open_call(Runtime& runtime, trace::Call call, cudaError_t observed) {
  ++runtime.counts[static_cast<std::size_t>(call)];
  if (runtime.sticky != cudaSuccess) return runtime.sticky;
  if (this_thread().in_host_function) return cudaErrorNotPermitted;
  return observed;
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

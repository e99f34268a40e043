// What every interposed runtime call does before and after the real one: the observer, the event
// log, the last error, and what exists.
#ifndef CORE_DEVICE_CUDA_RUNTIME_CALLS_H_
#define CORE_DEVICE_CUDA_RUNTIME_CALLS_H_

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/device/device.h"
#include "core/trace/calls.h"
#include "core/trace/event_log.h"

namespace slotgraph::device::cuda {

// One for the process; thread-safe; never destroyed, because libraries call the runtime from static
// destructors.
class RuntimeCalls {
 public:
  using Observer = int (*)(const char* call, void* context);
  using Arguments = std::array<std::uint64_t, 4>;

  static RuntimeCalls& instance();

  // The error that the call has to return without running, if any.
  [[gnu::always_inline]] cudaError_t open(trace::Call call) {
    const Observer observer = observer_.load(std::memory_order_acquire);
    const int observed = observer ? observer(trace::call_name(call).data(), context_) : 0;
    const cudaError_t lost = lost_;
    return lost != cudaSuccess ? lost : static_cast<cudaError_t>(observed);
  }
  // Writes the call down. Returns `result`.
  cudaError_t close(trace::Call call, const Arguments& arguments, cudaError_t result);
  // An error that no real call reported: it is the thread's last one until it is asked for.
  void remember(cudaError_t error);
  // The remembered error, else `real`; `take` forgets it.
  cudaError_t last_error(cudaError_t real, bool take);

  void observe(Observer observer, void* context);
  void lose(cudaError_t error) { lost_ = error; }
  std::vector<std::string> log();

  std::atomic<std::size_t> segments = 0;
  std::atomic<std::size_t> graphs = 0;
  std::atomic<std::size_t> events = 0;
  std::atomic<std::size_t> captures = 0;

 private:
  RuntimeCalls() = default;

  std::atomic<Observer> observer_ = nullptr;
  std::atomic<void*> context_ = nullptr;
  std::atomic<cudaError_t> lost_ = cudaSuccess;
  std::mutex mutex_;  // of the rest
  trace::EventLog log_;
  std::uint64_t sequence_ = 0;
  int threads_ = 0;
};

}  // namespace slotgraph::device::cuda

#endif  // CORE_DEVICE_CUDA_RUNTIME_CALLS_H_

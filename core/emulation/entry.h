// What every entry point does before and after its own work: count, observer, sticky error, log,
// last error.
#ifndef CORE_EMULATION_ENTRY_H_
#define CORE_EMULATION_ENTRY_H_

#include <array>
#include <cstdint>
#include <type_traits>

#include "core/emulation/runtime.h"
#include "core/trace/calls.h"

#define SLOTGRAPH_API extern "C" __attribute__((visibility("default")))

namespace slotgraph::emulation {

template <typename T>
std::uint64_t as_argument(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<std::uintptr_t>(value);
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

using Observer = int (*)(const char* call, void* context);
void set_observer(Observer observer, void* context);
// What the observer says of a call, without the lock.
cudaError_t ask_observer(trace::Call call);
// The first part of a call, with what the observer said. Returns the error that ends it, if any.
cudaError_t open_call(Runtime& runtime, trace::Call call, cudaError_t observed);
// The last part: log entry and last error. Returns `result`.
cudaError_t close_call(Runtime& runtime, trace::Call call,
                       const std::array<std::uint64_t, 4>& arguments, cudaError_t result);

// Runs `body(runtime, lock)` as one entry point. Nothing may throw out of a C function, so the body
// is noexcept: running out of host memory in here ends the process.
template <typename Body, typename... Arguments>
cudaError_t entry(trace::Call call, Body body, Arguments... arguments) noexcept {
  Runtime& runtime = Runtime::instance();
  const cudaError_t observed = ask_observer(call);
  std::vector<std::shared_ptr<const void>> discarded;  // dies after the lock
  Runtime::Lock lock = runtime.lock();
  cudaError_t result = open_call(runtime, call, observed);
  if (result == cudaSuccess) result = body(runtime, lock);
  discarded.swap(runtime.discarded);
  return close_call(runtime, call, {as_argument(arguments)...}, result);
}

}  // namespace slotgraph::emulation

#endif  // CORE_EMULATION_ENTRY_H_

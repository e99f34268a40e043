#include "core/emulation/control.h"

#include "core/emulation/entry.h"

namespace slotgraph::emulation {
namespace {

template <typename Body>
auto locked(Body body) {
  Runtime& runtime = Runtime::instance();
  const Runtime::Lock lock = runtime.lock();
  return body(runtime);
}

std::optional<trace::Call> find(const char* name) {
  const auto call = trace::find_call(name);
  return call && static_cast<int>(*call) < trace::kEmulatedCallCount ? call : std::nullopt;
}

}  // namespace

SLOTGRAPH_API void slotgraph_emulation_set_seed(uint64_t seed) {
  locked([=](Runtime& runtime) {
    runtime.scheduler.set_seed(seed);
    runtime.device_memory.set_seed(seed);
  });
}

SLOTGRAPH_API void slotgraph_emulation_set_address_policy(SlotgraphAddressPolicy policy) {
  locked(
      [=](Runtime& runtime) { runtime.device_memory.policy = static_cast<AddressPolicy>(policy); });
}

SLOTGRAPH_API void slotgraph_emulation_set_poison(uint8_t byte) {
  locked([=](Runtime& runtime) { runtime.device_memory.set_poison(byte); });
}

SLOTGRAPH_API void slotgraph_emulation_set_capacity(size_t bytes) {
  locked([=](Runtime& runtime) { runtime.device_memory.capacity = bytes; });
}

SLOTGRAPH_API int slotgraph_emulation_set_device_count(int count) {
  if (count < 1 || count > DeviceMemory::kMaxDevices) return -1;
  locked([=](Runtime& runtime) { runtime.device_count = count; });
  return 0;
}

SLOTGRAPH_API void slotgraph_emulation_observe(int (*observer)(const char*, void*), void* context) {
  set_observer(observer, context);
}

SLOTGRAPH_API uint64_t slotgraph_emulation_count(const char* call) {
  return locked([=](Runtime& runtime) -> uint64_t {
    if (!call) return runtime.sequence;
    const auto found = find(call);
    return found ? runtime.counts[static_cast<std::size_t>(*found)] : 0;
  });
}

SLOTGRAPH_API void slotgraph_emulation_set_log_limit(size_t entries) {
  locked([=](Runtime& runtime) { runtime.log.set_limit(entries); });
}

SLOTGRAPH_API void slotgraph_emulation_read_log(void (*line)(const char*, void*), void* context) {
  locked([=](Runtime& runtime) {
    for (const auto& logged : runtime.log.entries())
      line(trace::to_string(logged).c_str(), context);
  });
}

SLOTGRAPH_API void slotgraph_emulation_raise(int error) {
  std::vector<Work> dropped;  // dies without the lock
  locked([&](Runtime& runtime) {
    if (runtime.sticky == cudaSuccess) runtime.sticky = static_cast<cudaError_t>(error);
    dropped = runtime.scheduler.drop();
  });
}

SLOTGRAPH_API SlotgraphEmulationUsage slotgraph_emulation_usage() {
  return locked([](Runtime& runtime) {
    SlotgraphEmulationUsage usage{};
    for (int device = 0; device < DeviceMemory::kMaxDevices; ++device) {
      usage.device_bytes += runtime.device_memory.used(device);
    }
    usage.pinned_bytes = runtime.pinned_memory.used();
    usage.segments = runtime.device_memory.segments();
    usage.queued = runtime.scheduler.pending();
    usage.graphs = runtime.graphs.size() + runtime.executables.size();
    usage.events = runtime.events.size();
    usage.captures = runtime.captures();
    return usage;
  });
}

}  // namespace slotgraph::emulation

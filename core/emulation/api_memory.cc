// Memory entry points.
#include <cstring>

#include "core/emulation/entry.h"

namespace slotgraph::emulation {
namespace {

using trace::Call;

enum class Place { kPageable, kPinned, kDevice };

Place place_of(Runtime& runtime, const void* pointer) {
  if (runtime.device_memory.device_of(pointer) >= 0) return Place::kDevice;
  return runtime.pinned_memory.contains(pointer) ? Place::kPinned : Place::kPageable;
}

// A pointer that `kind` calls device memory must be device memory for all of its bytes.
bool valid_copy(Runtime& runtime, void* to, const void* from, std::size_t bytes,
                cudaMemcpyKind kind) {
  const auto device_range = [&](const void* pointer) {
    return runtime.device_memory.contains(pointer, bytes);
  };
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
                         (kind == cudaMemcpyDefault && place_of(runtime, to) == Place::kDevice);
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
                           (kind == cudaMemcpyDefault && place_of(runtime, from) == Place::kDevice);
  return to && from && (!to_device || device_range(to)) && (!from_device || device_range(from));
}

// Copies in stream order. Pageable sources are read at the call; copies to pageable memory wait for
// the stream. A captured copy does neither: the launch reads and writes.
cudaError_t copy(Runtime& runtime, Runtime::Lock& lock, void* to, const void* from,
                 std::size_t bytes, cudaMemcpyKind kind, cudaStream_t handle, bool blocking) {
  Stream* const stream = runtime.find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  if (!valid_copy(runtime, to, from, bytes, kind)) return cudaErrorInvalidValue;
  const bool pageable_source = place_of(runtime, from) == Place::kPageable;
  const bool pageable_target = place_of(runtime, to) == Place::kPageable;
  const bool captured = stream->capture != nullptr;
  Work work;
  work.kind = Work::Kind::kCopy;
  work.destination = to;
  work.source = from;
  work.bytes = bytes;
  if (pageable_source && !captured) {
    const auto* begin = static_cast<const std::uint8_t*>(from);
    work.snapshot = std::make_shared<std::vector<std::uint8_t>>(begin, begin + bytes);
  }
  if (const cudaError_t error =
          runtime.submit(lock, stream, std::move(work), cudaGraphNodeTypeMemcpy))
    return error;
  return (blocking || pageable_target) && !captured ? runtime.run_until(lock, {stream->tail})
                                                    : cudaSuccess;
}

cudaError_t fill(Runtime& runtime, Runtime::Lock& lock, void* to, int value, std::size_t bytes,
                 cudaStream_t handle) {
  Stream* const stream = runtime.find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  if (!runtime.device_memory.contains(to, bytes) && !runtime.pinned_memory.contains(to))
    return cudaErrorInvalidValue;
  Work work;
  work.kind = Work::Kind::kFill;
  work.destination = to;
  work.byte = static_cast<std::uint8_t>(value);
  work.bytes = bytes;
  return runtime.submit(lock, stream, std::move(work), cudaGraphNodeTypeMemset);
}

cudaError_t allocate_pinned(Runtime& runtime, void** pointer, std::size_t bytes) {
  if (!pointer) return cudaErrorInvalidValue;
  if (const cudaError_t error = runtime.check_unsafe_call()) return error;
  *pointer = bytes == 0 ? nullptr : runtime.pinned_memory.allocate(bytes);
  return bytes == 0 || *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
}

}  // namespace

SLOTGRAPH_API cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return entry(
      Call::cudaMalloc,
      [=](Runtime& runtime, Runtime::Lock&) {
        if (!pointer) return cudaErrorInvalidValue;
        if (const cudaError_t error = runtime.check_unsafe_call()) return error;
        *pointer = nullptr;
        if (bytes == 0) return cudaSuccess;
        const auto result = runtime.device_memory.allocate(this_thread().device, bytes, pointer);
        return result == DeviceMemory::Result::kOk ? cudaSuccess : cudaErrorMemoryAllocation;
      },
      pointer, bytes);
}

// Waits for the device, as the real one does: queued work may still use the memory.
SLOTGRAPH_API cudaError_t cudaFree(void* pointer) {
  return entry(
      Call::cudaFree,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        if (!pointer) return cudaSuccess;
        if (const cudaError_t error = runtime.check_unsafe_call()) return error;
        if (const cudaError_t error = runtime.run_all(lock)) return error;
        const auto result = runtime.device_memory.free(pointer);
        return result == DeviceMemory::Result::kOk ? cudaSuccess : cudaErrorInvalidValue;
      },
      pointer);
}

SLOTGRAPH_API cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return entry(
      Call::cudaHostAlloc,
      [=](Runtime& runtime, Runtime::Lock&) {
        constexpr unsigned int known =
            cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
        if (flags & ~known) return cudaErrorInvalidValue;
        return allocate_pinned(runtime, pointer, bytes);
      },
      pointer, bytes, flags);
}

SLOTGRAPH_API cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return entry(
      Call::cudaMallocHost,
      [=](Runtime& runtime, Runtime::Lock&) { return allocate_pinned(runtime, pointer, bytes); },
      pointer, bytes);
}

SLOTGRAPH_API cudaError_t cudaFreeHost(void* pointer) {
  return entry(
      Call::cudaFreeHost,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        if (!pointer) return cudaSuccess;
        if (const cudaError_t error = runtime.check_unsafe_call()) return error;
        if (const cudaError_t error = runtime.run_all(lock)) return error;
        return runtime.pinned_memory.free(pointer) ? cudaSuccess : cudaErrorInvalidValue;
      },
      pointer);
}

SLOTGRAPH_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                                   const void* pointer) {
  return entry(
      Call::cudaPointerGetAttributes,
      [=](Runtime& runtime, Runtime::Lock&) {
        if (!attributes) return cudaErrorInvalidValue;
        *attributes = {};
        const int device = runtime.device_memory.device_of(pointer);
        auto* const address = const_cast<void*>(pointer);
        if (device >= 0) {
          attributes->type = cudaMemoryTypeDevice;
          attributes->device = device;
          attributes->devicePointer = address;
        } else if (runtime.pinned_memory.contains(pointer)) {
          attributes->type = cudaMemoryTypeHost;
          attributes->device = this_thread().device;
          attributes->devicePointer = address;
          attributes->hostPointer = address;
        } else {
          attributes->type = cudaMemoryTypeUnregistered;
          attributes->device = -2;  // cudaInvalidDeviceId
          attributes->hostPointer = address;
        }
        return cudaSuccess;
      },
      attributes, pointer);
}

SLOTGRAPH_API cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return entry(
      Call::cudaMemGetInfo,
      [=](Runtime& runtime, Runtime::Lock&) {
        if (!free || !total) return cudaErrorInvalidValue;
        const std::size_t used = runtime.device_memory.used(this_thread().device);
        const std::size_t capacity = runtime.device_memory.capacity;
        *total = capacity;
        *free = used < capacity ? capacity - used : 0;
        return cudaSuccess;
      },
      free, total);
}

SLOTGRAPH_API cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes,
                                     cudaMemcpyKind kind) {
  return entry(
      Call::cudaMemcpy,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        return copy(runtime, lock, to, from, bytes, kind, nullptr, true);
      },
      to, from, bytes, static_cast<int>(kind));
}

SLOTGRAPH_API cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                                          cudaMemcpyKind kind, cudaStream_t stream) {
  return entry(
      Call::cudaMemcpyAsync,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        return copy(runtime, lock, to, from, bytes, kind, stream, false);
      },
      to, from, bytes, stream);
}

SLOTGRAPH_API cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from,
                                              int from_device, size_t bytes, cudaStream_t stream) {
  return entry(
      Call::cudaMemcpyPeerAsync,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        if (bytes != 0 && (runtime.device_memory.device_of(to) != to_device ||
                           runtime.device_memory.device_of(from) != from_device)) {
          return cudaErrorInvalidValue;
        }
        return copy(runtime, lock, to, from, bytes, cudaMemcpyDeviceToDevice, stream, false);
      },
      to, from, bytes, stream);
}

SLOTGRAPH_API cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return entry(
      Call::cudaMemset,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        return fill(runtime, lock, to, value, bytes, nullptr);
      },
      to, value, bytes);
}

SLOTGRAPH_API cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return entry(
      Call::cudaMemsetAsync,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        return fill(runtime, lock, to, value, bytes, stream);
      },
      to, value, bytes, stream);
}

}  // namespace slotgraph::emulation

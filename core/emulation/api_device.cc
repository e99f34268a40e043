// Devices, versions and errors.
#include <cstring>
#include <utility>

#include "core/emulation/entry.h"

namespace slotgraph::emulation {
namespace {

using trace::Call;

constexpr int kVersion = 13000;

// The names of the errors that this runtime returns itself, or that PyTorch tests for.
struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
#define SLOTGRAPH_ERROR(name, text) \
  { name, #name, text }
    SLOTGRAPH_ERROR(cudaSuccess, "no error"),
    SLOTGRAPH_ERROR(cudaErrorInvalidValue, "invalid argument"),
    SLOTGRAPH_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    SLOTGRAPH_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    SLOTGRAPH_ERROR(cudaErrorUnknown, "unknown error"),
    SLOTGRAPH_ERROR(cudaErrorInitializationError, "initialization error"),
    SLOTGRAPH_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    SLOTGRAPH_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    SLOTGRAPH_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    SLOTGRAPH_ERROR(cudaErrorIllegalState,
                    "the operation cannot be performed in the present state"),
    SLOTGRAPH_ERROR(cudaErrorNotReady, "device not ready"),
    SLOTGRAPH_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    SLOTGRAPH_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    SLOTGRAPH_ERROR(cudaErrorAssert, "device-side assert triggered"),
    SLOTGRAPH_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    SLOTGRAPH_ERROR(cudaErrorNotSupported, "operation not supported"),
    SLOTGRAPH_ERROR(cudaErrorStreamCaptureUnsupported,
                    "operation not permitted when stream is capturing"),
    SLOTGRAPH_ERROR(cudaErrorStreamCaptureInvalidated,
                    "operation failed due to a previous error during capture"),
    SLOTGRAPH_ERROR(cudaErrorStreamCaptureMerge,
                    "operation would result in a merge of separate capture sequences"),
    SLOTGRAPH_ERROR(cudaErrorStreamCaptureUnmatched,
                    "capture was not ended in the same stream as it began"),
    SLOTGRAPH_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    SLOTGRAPH_ERROR(cudaErrorStreamCaptureIsolation,
                    "dependency created on uncaptured work in another stream"),
    SLOTGRAPH_ERROR(cudaErrorStreamCaptureImplicit,
                    "operation would make the legacy stream depend on a capturing blocking stream"),
    SLOTGRAPH_ERROR(cudaErrorCapturedEvent,
                    "operation not permitted on an event last recorded in a capturing stream"),
    SLOTGRAPH_ERROR(cudaErrorStreamCaptureWrongThread,
                    "attempt to terminate a thread-local capture sequence from another thread"),
#undef SLOTGRAPH_ERROR
};

bool valid_device(const Runtime& runtime, int device) {
  return device >= 0 && device < runtime.device_count;
}

}  // namespace

SLOTGRAPH_API const char* cudaGetErrorName(cudaError_t error) {
  for (const ErrorText& known : kErrors) {
    if (known.error == error) return known.name;
  }
  return "cudaErrorUnknown";
}

SLOTGRAPH_API const char* cudaGetErrorString(cudaError_t error) {
  for (const ErrorText& known : kErrors) {
    if (known.error == error) return known.text;
  }
  return "unrecognized error code";
}

SLOTGRAPH_API cudaError_t cudaGetLastError() {
  return entry(Call::cudaGetLastError, [](Runtime&, Runtime::Lock&) {
    return std::exchange(this_thread().last_error, cudaSuccess);
  });
}

SLOTGRAPH_API cudaError_t cudaPeekAtLastError() {
  return entry(Call::cudaPeekAtLastError,
               [](Runtime&, Runtime::Lock&) { return this_thread().last_error; });
}

SLOTGRAPH_API cudaError_t cudaGetDeviceCount(int* count) {
  return entry(
      Call::cudaGetDeviceCount,
      [=](Runtime& runtime, Runtime::Lock&) {
        if (!count) return cudaErrorInvalidValue;
        *count = runtime.device_count;
        return cudaSuccess;
      },
      count);
}

SLOTGRAPH_API cudaError_t cudaGetDevice(int* device) {
  return entry(
      Call::cudaGetDevice,
      [=](Runtime&, Runtime::Lock&) {
        if (!device) return cudaErrorInvalidValue;
        *device = this_thread().device;
        return cudaSuccess;
      },
      device);
}

SLOTGRAPH_API cudaError_t cudaSetDevice(int device) {
  return entry(
      Call::cudaSetDevice,
      [=](Runtime& runtime, Runtime::Lock&) {
        if (!valid_device(runtime, device)) return cudaErrorInvalidDevice;
        this_thread().device = device;
        return cudaSuccess;
      },
      device);
}

SLOTGRAPH_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return entry(
      Call::cudaGetDeviceProperties,
      [=](Runtime& runtime, Runtime::Lock&) {
        if (!properties) return cudaErrorInvalidValue;
        if (!valid_device(runtime, device)) return cudaErrorInvalidDevice;
        std::memset(properties, 0, sizeof *properties);
        std::strcpy(properties->name, "slotgraph emulated device");
        properties->major = 9;
        properties->minor = 0;
        properties->totalGlobalMem = runtime.device_memory.capacity;
        properties->multiProcessorCount = 132;
        properties->warpSize = 32;
        properties->maxThreadsPerBlock = 1024;
        properties->maxThreadsPerMultiProcessor = 2048;
        properties->pciBusID = device + 1;
        return cudaSuccess;
      },
      properties, device);
}

SLOTGRAPH_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return entry(
      Call::cudaDeviceGetAttribute,
      [=](Runtime& runtime, Runtime::Lock&) {
        if (!value) return cudaErrorInvalidValue;
        if (!valid_device(runtime, device)) return cudaErrorInvalidDevice;
        switch (attribute) {
          case cudaDevAttrComputeCapabilityMajor:
            *value = 9;
            return cudaSuccess;
          case cudaDevAttrComputeCapabilityMinor:
            *value = 0;
            return cudaSuccess;
          case cudaDevAttrMultiProcessorCount:
            *value = 132;
            return cudaSuccess;
          default:
            return cudaErrorNotSupported;
        }
      },
      value, static_cast<int>(attribute), device);
}

SLOTGRAPH_API cudaError_t cudaDeviceSynchronize() {
  return entry(Call::cudaDeviceSynchronize, [](Runtime& runtime, Runtime::Lock& lock) {
    if (const cudaError_t error = runtime.check_device_wait()) return error;
    return runtime.run_all(lock);
  });
}

SLOTGRAPH_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return entry(
      Call::cudaDeviceGetStreamPriorityRange,
      [=](Runtime&, Runtime::Lock&) {
        if (least) *least = 0;
        if (greatest) *greatest = -5;
        return cudaSuccess;
      },
      least, greatest);
}

SLOTGRAPH_API cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return entry(
      Call::cudaDeviceCanAccessPeer,
      [=](Runtime& runtime, Runtime::Lock&) {
        if (!can) return cudaErrorInvalidValue;
        if (!valid_device(runtime, device) || !valid_device(runtime, peer))
          return cudaErrorInvalidDevice;
        *can = 0;
        return cudaSuccess;
      },
      can, device, peer);
}

SLOTGRAPH_API cudaError_t cudaDriverGetVersion(int* version) {
  return entry(
      Call::cudaDriverGetVersion,
      [=](Runtime&, Runtime::Lock&) {
        if (!version) return cudaErrorInvalidValue;
        *version = kVersion;
        return cudaSuccess;
      },
      version);
}

SLOTGRAPH_API cudaError_t cudaRuntimeGetVersion(int* version) {
  return entry(
      Call::cudaRuntimeGetVersion,
      [=](Runtime&, Runtime::Lock&) {
        if (!version) return cudaErrorInvalidValue;
        *version = kVersion;
        return cudaSuccess;
      },
      version);
}

}  // namespace slotgraph::emulation

// What the tests of the emulation's own behaviour share.
#ifndef CORE_EMULATION_EMULATION_TESTING_H_
#define CORE_EMULATION_EMULATION_TESTING_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/emulation/conformance_testing.h"
#include "core/emulation/control.h"
#include "core/emulation/failing_call.h"

namespace slotgraph::emulation {

using testing::FailingCall;

class EmulationTest : public ::testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override {
    EXPECT_OK(cudaDeviceSynchronize());
    reset();
  }

 private:
  static void reset() {
    slotgraph_emulation_set_seed(0);
    slotgraph_emulation_set_address_policy(SLOTGRAPH_ADDRESS_ASCENDING);
    slotgraph_emulation_set_poison(0xFF);
    slotgraph_emulation_set_capacity(std::size_t{8} << 30);
    slotgraph_emulation_set_log_limit(1 << 16);
    EXPECT_OK(cudaSetDevice(0));
    EXPECT_EQ(slotgraph_emulation_set_device_count(1), 0);
    cudaGetLastError();
  }
};

inline std::vector<std::string> read_log() {
  std::vector<std::string> lines;
  slotgraph_emulation_read_log(
      [](const char* text, void* context) {
        static_cast<std::vector<std::string>*>(context)->push_back(text);
      },
      &lines);
  return lines;
}

struct NamedCall {
  const char* name;
  std::function<cudaError_t()> call;
  bool supported = true;
};

// One call of every entry point, each harmless whether it runs or not.
inline std::vector<NamedCall> every_call() {
  static void* pointer;
  static std::size_t size;
  static int number;
  static float time;
  static cudaStream_t stream;
  static cudaEvent_t event;
  static cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  static cudaStreamCaptureStatus status;
  static cudaPointerAttributes attributes;
  static cudaDeviceProp properties;
#define SLOTGRAPH_CALL(name, ...)           \
  NamedCall {                               \
#name, [] { return name(__VA_ARGS__); } \
  }
#define SLOTGRAPH_REFUSED(name, ...)               \
  NamedCall {                                      \
#name, [] { return name(__VA_ARGS__); }, false \
  }
  return {
      SLOTGRAPH_CALL(cudaMalloc, &pointer, 0),
      SLOTGRAPH_CALL(cudaFree, nullptr),
      SLOTGRAPH_CALL(cudaHostAlloc, &pointer, 0, 0),
      SLOTGRAPH_CALL(cudaMallocHost, &pointer, 0),
      SLOTGRAPH_CALL(cudaFreeHost, nullptr),
      SLOTGRAPH_CALL(cudaPointerGetAttributes, &attributes, &pointer),
      SLOTGRAPH_CALL(cudaMemGetInfo, &size, &size),
      SLOTGRAPH_CALL(cudaMemcpy, nullptr, nullptr, 0, cudaMemcpyDefault),
      SLOTGRAPH_CALL(cudaMemcpyAsync, nullptr, nullptr, 0, cudaMemcpyDefault, nullptr),
      SLOTGRAPH_CALL(cudaMemcpyPeerAsync, nullptr, 0, nullptr, 0, 0, nullptr),
      SLOTGRAPH_CALL(cudaMemset, nullptr, 0, 0),
      SLOTGRAPH_CALL(cudaMemsetAsync, nullptr, 0, 0, nullptr),
      SLOTGRAPH_CALL(cudaGetDeviceCount, &number),
      SLOTGRAPH_CALL(cudaGetDevice, &number),
      SLOTGRAPH_CALL(cudaSetDevice, 0),
      SLOTGRAPH_CALL(cudaGetDeviceProperties, &properties, 0),
      SLOTGRAPH_CALL(cudaDeviceGetAttribute, &number, cudaDevAttrMultiProcessorCount, 0),
      SLOTGRAPH_CALL(cudaDeviceSynchronize, ),
      SLOTGRAPH_CALL(cudaDeviceGetStreamPriorityRange, &number, &number),
      SLOTGRAPH_CALL(cudaDeviceCanAccessPeer, &number, 0, 0),
      SLOTGRAPH_CALL(cudaDriverGetVersion, &number),
      SLOTGRAPH_CALL(cudaRuntimeGetVersion, &number),
      SLOTGRAPH_CALL(cudaGetLastError, ),
      SLOTGRAPH_CALL(cudaPeekAtLastError, ),
      SLOTGRAPH_CALL(cudaStreamCreate, &stream),
      SLOTGRAPH_CALL(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking),
      SLOTGRAPH_CALL(cudaStreamCreateWithPriority, &stream, cudaStreamNonBlocking, 0),
      SLOTGRAPH_CALL(cudaStreamDestroy, nullptr),
      SLOTGRAPH_CALL(cudaStreamSynchronize, nullptr),
      SLOTGRAPH_CALL(cudaStreamQuery, nullptr),
      SLOTGRAPH_CALL(cudaStreamWaitEvent, nullptr, nullptr, 0),
      SLOTGRAPH_CALL(cudaStreamIsCapturing, nullptr, &status),
      SLOTGRAPH_CALL(cudaStreamBeginCapture, nullptr, cudaStreamCaptureModeGlobal),
      SLOTGRAPH_CALL(cudaStreamEndCapture, nullptr, nullptr),
      SLOTGRAPH_CALL(cudaStreamGetCaptureInfo, nullptr, &status, nullptr, nullptr, nullptr, nullptr,
                     nullptr),
      SLOTGRAPH_CALL(cudaThreadExchangeStreamCaptureMode, &mode),
      SLOTGRAPH_CALL(cudaEventCreate, &event),
      SLOTGRAPH_CALL(cudaEventCreateWithFlags, &event, cudaEventDisableTiming),
      SLOTGRAPH_CALL(cudaEventDestroy, nullptr),
      SLOTGRAPH_CALL(cudaEventRecord, nullptr, nullptr),
      SLOTGRAPH_CALL(cudaEventQuery, nullptr),
      SLOTGRAPH_CALL(cudaEventSynchronize, nullptr),
      SLOTGRAPH_CALL(cudaEventElapsedTime, &time, nullptr, nullptr),
      SLOTGRAPH_CALL(cudaLaunchHostFunc, nullptr, nullptr, nullptr),
      SLOTGRAPH_CALL(cudaGraphInstantiate, nullptr, nullptr, 0),
      SLOTGRAPH_CALL(cudaGraphLaunch, nullptr, nullptr),
      SLOTGRAPH_CALL(cudaGraphUpload, nullptr, nullptr),
      SLOTGRAPH_CALL(cudaGraphDestroy, nullptr),
      SLOTGRAPH_CALL(cudaGraphExecDestroy, nullptr),
      SLOTGRAPH_CALL(cudaGraphGetNodes, nullptr, nullptr, nullptr),
      SLOTGRAPH_CALL(cudaGraphGetEdges, nullptr, nullptr, nullptr, nullptr, nullptr),
      SLOTGRAPH_CALL(cudaGraphNodeGetType, nullptr, nullptr),
      SLOTGRAPH_CALL(cudaGraphNodeGetDependencies, nullptr, nullptr, nullptr, nullptr),
      SLOTGRAPH_CALL(cudaUserObjectCreate, nullptr, nullptr, nullptr, 1, 0),
      SLOTGRAPH_CALL(cudaUserObjectRelease, nullptr, 1),
      SLOTGRAPH_CALL(cudaGraphRetainUserObject, nullptr, nullptr, 1, 0),
      SLOTGRAPH_REFUSED(cudaDeviceEnablePeerAccess, 0, 0),
      SLOTGRAPH_REFUSED(cudaDeviceGetDefaultMemPool, nullptr, 0),
      SLOTGRAPH_REFUSED(cudaMallocAsync, &pointer, 1, nullptr),
      SLOTGRAPH_REFUSED(cudaFreeAsync, nullptr, nullptr),
      SLOTGRAPH_REFUSED(cudaIpcGetMemHandle, nullptr, nullptr),
      SLOTGRAPH_REFUSED(cudaIpcOpenMemHandle, nullptr, {}, 0),
      SLOTGRAPH_REFUSED(cudaIpcCloseMemHandle, nullptr),
      SLOTGRAPH_REFUSED(cudaMemPoolGetAttribute, nullptr, {}, nullptr),
      SLOTGRAPH_REFUSED(cudaMemPoolSetAttribute, nullptr, {}, nullptr),
      SLOTGRAPH_REFUSED(cudaMemPoolSetAccess, nullptr, nullptr, 0),
      SLOTGRAPH_REFUSED(cudaMemPoolTrimTo, nullptr, 0),
      SLOTGRAPH_REFUSED(cudaGetDriverEntryPointByVersion, nullptr, nullptr, 0, 0, nullptr),
  };
#undef SLOTGRAPH_CALL
#undef SLOTGRAPH_REFUSED
}

}  // namespace slotgraph::emulation

#endif  // CORE_EMULATION_EMULATION_TESTING_H_

// What the conformance tests share. They use the public CUDA runtime API only, and their host
// functions touch only memory of cudaHostAlloc, so that they are valid on the real runtime too.
#ifndef CORE_EMULATION_CONFORMANCE_TESTING_H_
#define CORE_EMULATION_CONFORMANCE_TESTING_H_

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#define EXPECT_OK(call) EXPECT_EQ(call, cudaSuccess)
#define ASSERT_OK(call) ASSERT_EQ(call, cudaSuccess)

namespace slotgraph::emulation {

class Stream {
 public:
  explicit Stream(unsigned int flags = cudaStreamNonBlocking) {
    EXPECT_OK(cudaStreamCreateWithFlags(&stream_, flags));
  }
  ~Stream() { EXPECT_OK(cudaStreamDestroy(stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned int flags = cudaEventDefault) {
    EXPECT_OK(cudaEventCreateWithFlags(&event_, flags));
  }
  ~Event() { EXPECT_OK(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Zeroed pinned host memory.
template <typename T>
class Pinned {
 public:
  explicit Pinned(std::size_t count = 1) {
    void* pointer = nullptr;
    EXPECT_OK(cudaHostAlloc(&pointer, count * sizeof(T), cudaHostAllocDefault));
    std::memset(pointer, 0, count * sizeof(T));
    data_ = static_cast<T*>(pointer);
  }
  ~Pinned() { EXPECT_OK(cudaFreeHost(data_)); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  T* get() const { return data_; }
  T* operator->() const { return data_; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
};

// Device memory.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) { EXPECT_OK(cudaMalloc(&data_, bytes)); }
  ~Buffer() { EXPECT_OK(cudaFree(data_)); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::uint8_t* get() const { return static_cast<std::uint8_t*>(data_); }

 private:
  void* data_ = nullptr;
};

// The order in which host functions ran.
class Journal {
 public:
  // A host function that writes down `value`.
  cudaError_t append(cudaStream_t stream, int value) {
    Entry& entry = state_->entries[used_++];
    entry = {state_.get(), value};
    return cudaLaunchHostFunc(stream, write, &entry);
  }
  std::vector<int> values() const {
    return {state_->values, state_->values + state_->count.load()};
  }

 private:
  static constexpr int kLimit = 64;
  struct State;
  struct Entry {
    State* state;
    int value;
  };
  struct State {
    std::atomic<int> count;
    int values[kLimit];
    Entry entries[kLimit];
  };
  static void write(void* argument) {
    auto* const entry = static_cast<Entry*>(argument);
    entry->state->values[entry->state->count.fetch_add(1)] = entry->value;
  }
  Pinned<State> state_;
  int used_ = 0;
};

// Holds a stream up until it is opened. Open it before anything waits for the stream.
class Gate {
 public:
  ~Gate() {
    open();
    EXPECT_OK(cudaDeviceSynchronize());
  }
  void close(cudaStream_t stream) {
    EXPECT_OK(cudaLaunchHostFunc(
        stream,
        [](void* argument) {
          while (!static_cast<std::atomic<int>*>(argument)->load()) std::this_thread::yield();
        },
        open_.get()));
  }
  void open() { open_->store(1); }

 private:
  Pinned<std::atomic<int>> open_;
};

inline cudaStreamCaptureStatus capture_status(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_OK(cudaStreamIsCapturing(stream, &status));
  return status;
}

inline cudaError_t begin_capture(cudaStream_t stream,
                                 cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  return cudaStreamBeginCapture(stream, mode);
}

// Lets `second` go on only when what `first` holds now is done; joins its capture, if it has one.
inline void order(cudaStream_t first, cudaStream_t second) {
  const Event event(cudaEventDisableTiming);
  EXPECT_OK(cudaEventRecord(event, first));
  EXPECT_OK(cudaStreamWaitEvent(second, event, 0));
}

inline cudaGraph_t end_capture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

// The error that ends a capture which has to fail.
inline cudaError_t failing_end(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  EXPECT_EQ(graph, nullptr);
  return error;
}

inline cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&executable, graph, 0));
  return executable;
}

class ConformanceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    EXPECT_OK(cudaFree(nullptr));
    cudaGetLastError();
  }
  void TearDown() override {
    EXPECT_OK(cudaDeviceSynchronize());
    cudaGetLastError();
  }
};

}  // namespace slotgraph::emulation

#endif  // CORE_EMULATION_CONFORMANCE_TESTING_H_

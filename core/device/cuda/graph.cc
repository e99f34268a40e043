// Capture and replay by at::cuda::CUDAGraph, and what it leaves open when a capture fails.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <iterator>

#include "core/device/destroy_graph.h"
#include "core/device/device.h"
#include "core/fatal.h"

namespace slotgraph::device {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

// at::cuda::CUDAGraph of libtorch 2.11 undoes nothing when capture_begin or capture_end throws: the
// stream goes on capturing, the allocators' scopes stay open with a use count of the pool each, and
// the generators stay in capture.
class LibraryGraph final : public at::cuda::CUDAGraph {
 public:
  // The library destroys once, in the thread's own capture mode, and forgets a captured graph that
  // it could not look at; it ends the process if a registration was not completed.
  ~LibraryGraph() {
    const bool raw = has_graph_ || (graph_ && !has_graph_exec_);
    destroy_graph(has_graph_exec_ ? graph_exec_ : nullptr, raw ? graph_ : nullptr);
    has_graph_exec_ = false;
    has_graph_ = false;
    for (auto it = captured_generator_states_.begin(); it != captured_generator_states_.end();) {
      const bool registered = it->first->registered_graphs_.contains(this);
      it = registered ? std::next(it) : captured_generator_states_.erase(it);
    }
  }

  bool capture_ended() const { return capture_ended_; }
  bool has_executable() const { return has_graph_exec_; }

  // Undoes a capture that began and has not ended. `stream` is the one that it began on, `uses` the
  // pool's use count before.
  void undo(c10::cuda::CUDAStream stream, c10::MempoolId_t pool, int uses) noexcept {
    end_stream_capture(stream);
    for (auto& [state, increment] : captured_generator_states_) {
      state->capturing_ = false;
      state->offset_intragraph_ = 0;
    }
    const c10::DeviceIndex device = stream.device_index();
    // A scope that never opened cannot be closed: which is what each of these may say.
    quietly([&] { caching::endAllocateToPool(device, pool); });
    quietly([&] {
      at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(pool);
      at::getHostAllocator(at::kCUDA)->release_pool(pool);
    });
    quietly([&] {
      while (caching::get()->getPoolUseCount(device, pool) > uses)
        caching::releasePool(device, pool);
    });
  }

 private:
  template <typename Call>
  static void quietly(const Call& call) noexcept {
    try {
      call();
    } catch (const std::exception&) {  // nothing to undo
    }
  }

  static void end_stream_capture(cudaStream_t stream) noexcept {
    for (int i = 0; i < 3; ++i) {
      cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
      const bool known = cudaStreamIsCapturing(stream, &status) == cudaSuccess;
      if (known && status == cudaStreamCaptureStatusNone) return;
      cudaGraph_t graph = nullptr;
      if (cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph)
        (void)cudaGraphDestroy(graph);
      (void)cudaGetLastError();
    }
    fatal("a stream cannot be made to end its capture");
  }
};

class IgnoreWarnings {
 public:
  IgnoreWarnings() : guard_(&handler_) {}

 private:
  struct Handler final : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
  Handler handler_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

class CudaGraph final : public Graph {
 public:
  ~CudaGraph() override { abandon(); }

  void register_generator(const at::Generator& generator) override {
    graph_.register_generator_state(generator);
  }

  void begin_capture(c10::MempoolId_t pool) override {
    TORCH_CHECK(!stream_, "a graph is captured once");
    stream_ = c10::cuda::getCurrentCUDAStream();
    TORCH_CHECK(
        *stream_ != c10::cuda::getDefaultCUDAStream(),
        "graphs must be captured on a non-default stream: set another current stream first");
    pool_ = pool;
    uses_ = pool_uses();
    capturing_ = true;
    graph_.capture_begin(pool, cudaStreamCaptureModeGlobal);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    C10_CUDA_CHECK(
        cudaStreamGetCaptureInfo(*stream_, &status, &id_, nullptr, nullptr, nullptr, nullptr));
  }

  void end_capture() override {
    TORCH_CHECK(capturing_, "end_capture without begin_capture");
    const IgnoreWarnings ignore;  // that a graph is empty: some frames have no work
    graph_.capture_end();
    capturing_ = false;
  }

  void abandon() noexcept override {
    if (!capturing_) return;
    capturing_ = false;
    // Once the capture has ended the library's destructor gives the pool back.
    if (!graph_.capture_ended()) graph_.undo(*stream_, pool_, uses_);
  }

  bool captures(c10::cuda::CUDAStream stream) const override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    C10_CUDA_CHECK(
        cudaStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr));
    return status != cudaStreamCaptureStatusNone && id == id_;
  }

  void replay() override {
    TORCH_CHECK(graph_.has_executable(), "replay of a graph that was not captured");
    graph_.replay();
  }

 private:
  // 0 if there is no such pool.
  int pool_uses() const {
    try {
      return caching::get()->getPoolUseCount(stream_->device_index(), pool_);
    } catch (const c10::Error&) {
      return 0;
    }
  }

  LibraryGraph graph_;
  std::optional<c10::cuda::CUDAStream> stream_;
  c10::MempoolId_t pool_{};
  int uses_ = 0;
  unsigned long long id_ = 0;
  bool capturing_ = false;
};

}  // namespace

std::unique_ptr<Graph> make_graph() { return std::make_unique<CudaGraph>(); }

}  // namespace slotgraph::device

// Capture and replay on the host device: the call sequence of at::cuda::CUDAGraph over the emulated
// runtime.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/device/destroy_graph.h"
#include "core/device/device.h"
#include "core/device/host/generator.h"
#include "core/device/host/poison.h"
#include "core/device/host/work.h"
#include "core/fatal.h"

namespace slotgraph::device {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

class HostGraph final : public Graph {
 public:
  ~HostGraph() override {
    abandon();
    destroy_graph(executable_, graph_);
    if (holds_pool_) caching::releasePool(device_, pool_);
  }

  void register_generator(const at::Generator& generator) override {
    const auto known = [&](const Drawn& drawn) { return drawn.generator == generator; };
    if (std::any_of(generators_.begin(), generators_.end(), known)) return;
    generators_.push_back({generator, std::make_shared<host::PhiloxCell>(), 0});
  }

  void begin_capture(c10::MempoolId_t pool) override {
    TORCH_CHECK(state_ == State::kNew, "a graph is captured once");
    stream_ = c10::cuda::getCurrentCUDAStream();
    TORCH_CHECK(
        *stream_ != c10::cuda::getDefaultCUDAStream(),
        "graphs must be captured on a non-default stream: set another current stream first");
    device_ = stream_->device_index();
    pool_ = pool;
    caching::beginAllocateToPool(device_, pool_,
                                 [this](cudaStream_t stream) { return is_captured(stream); });
    holds_pool_ = true;
    state_ = State::kScopeOpen;
    register_generator(host::default_generator(device_));
    for (Drawn& drawn : generators_) {
      host::HostGenerator& generator = host::as_host(drawn.generator);
      const std::lock_guard lock(generator.mutex_);
      generator.begin_capture(drawn.cell);
      ++open_generators_;
    }
    state_ = State::kGeneratorsOpen;
    C10_CUDA_CHECK(cudaStreamBeginCapture(*stream_, cudaStreamCaptureModeGlobal));
    state_ = State::kCapturing;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    C10_CUDA_CHECK(
        cudaStreamGetCaptureInfo(*stream_, &status, &id_, nullptr, nullptr, nullptr, nullptr));
    host::note_capture(id_, pool_);
  }

  void end_capture() override {
    TORCH_CHECK(state_ == State::kCapturing, "end_capture without begin_capture");
    const cudaError_t ended = close();
    C10_CUDA_CHECK(ended);
    C10_CUDA_CHECK(cudaGraphInstantiate(&executable_, graph_, 0));
    state_ = State::kReady;
  }

  void abandon() noexcept override {
    const bool open = state_ == State::kScopeOpen || state_ == State::kGeneratorsOpen ||
                      state_ == State::kCapturing;
    if (open && close() != cudaSuccess) (void)cudaGetLastError();
  }

  bool captures(c10::cuda::CUDAStream stream) const override {
    return is_captured(stream.stream());
  }

  void replay() override {
    TORCH_CHECK(state_ == State::kReady, "replay of a graph that was not captured");
    for (const Drawn& drawn : generators_) {
      if (drawn.consumed == 0) continue;
      host::HostGenerator& generator = host::as_host(drawn.generator);
      host::PhiloxCell state;
      {
        const std::lock_guard lock(generator.mutex_);
        state = generator.take_for_replay(drawn.consumed);
      }
      host::submit_function([cell = drawn.cell, state] { *cell = state; });
    }
    C10_CUDA_CHECK(cudaGraphLaunch(executable_, c10::cuda::getCurrentCUDAStream()));
  }

 private:
  enum class State { kNew, kScopeOpen, kGeneratorsOpen, kCapturing, kClosed, kReady };
  struct Drawn {
    at::Generator generator;
    std::shared_ptr<host::PhiloxCell> cell;
    std::uint64_t consumed;  // by one replay
  };

  // A stream that cannot be asked may be capturing.
  bool may_capture() const {
    for (int i = 0; i < 2; ++i) {
      cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
      if (cudaStreamIsCapturing(*stream_, &status) == cudaSuccess)
        return status != cudaStreamCaptureStatusNone;
      (void)cudaGetLastError();
    }
    return true;
  }

  bool is_captured(cudaStream_t stream) const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    C10_CUDA_CHECK(
        cudaStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr));
    return status != cudaStreamCaptureStatusNone && id == id_;
  }

  // Undoes begin_capture in reverse order, as far as it came: stream capture first, on its own
  // stream.
  cudaError_t close() noexcept {
    cudaError_t result = cudaSuccess;
    if (state_ == State::kCapturing) {
      host::forget_capture(id_);
      // A call may report the failure of earlier work and not run itself; the stream must not go on
      // capturing.
      result = cudaStreamEndCapture(*stream_, &graph_);
      if (result != cudaSuccess && may_capture()) {
        (void)cudaGetLastError();
        (void)cudaStreamEndCapture(*stream_, &graph_);
        (void)cudaGetLastError();
        if (may_capture()) fatal("a stream cannot be made to end its capture");
      }
    }
    for (; open_generators_ > 0; --open_generators_) {
      Drawn& drawn = generators_[open_generators_ - 1];
      host::HostGenerator& generator = host::as_host(drawn.generator);
      const std::lock_guard lock(generator.mutex_);
      drawn.consumed = generator.end_capture();
    }
    caching::endAllocateToPool(device_, pool_);
    state_ = State::kClosed;
    return result;
  }

  State state_ = State::kNew;
  std::optional<c10::cuda::CUDAStream> stream_;
  c10::DeviceIndex device_ = 0;
  c10::MempoolId_t pool_{};
  bool holds_pool_ = false;
  unsigned long long id_ = 0;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  std::vector<Drawn> generators_;
  std::size_t open_generators_ = 0;
};

}  // namespace

std::unique_ptr<Graph> make_graph() { return std::make_unique<HostGraph>(); }

}  // namespace slotgraph::device

#include "core/device/host/poison.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/device/block_contents.h"

namespace slotgraph::device::host {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

std::atomic<std::uint8_t> pattern{0xFF};
std::atomic<bool> enabled{true};

struct Captures {
  std::mutex mutex;
  std::map<unsigned long long, c10::MempoolId_t> pools;  // capture id → pool
};
Captures& captures() {
  static Captures& instance = *new Captures();
  return instance;
}

// What the stream captures into, if it does. A stream that cannot be asked may be capturing.
struct CaptureOfStream {
  cudaError_t error = cudaSuccess;
  std::optional<unsigned long long> id;
};

CaptureOfStream capture_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  CaptureOfStream found;
  found.error = cudaStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr);
  if (found.error != cudaSuccess) (void)cudaGetLastError();
  if (found.error == cudaSuccess && status != cudaStreamCaptureStatusNone) found.id = id;
  return found;
}

bool may_fill(cudaStream_t stream, c10::MempoolId_t pool) {
  const auto [error, id] = capture_of(stream);
  if (error != cudaSuccess) return false;
  if (!id) return true;
  const std::lock_guard lock(captures().mutex);
  const auto it = captures().pools.find(*id);
  return it != captures().pools.end() && it->second == pool;
}

bool several_devices = false;

// A block may die where another device is current, and a default stream is the current device's.
// Makes no call if there is one device only: calls are counted.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    if (!several_devices) return;
    if (cudaGetDevice(&before_) != cudaSuccess) {
      (void)cudaGetLastError();
    } else if (before_ != device) {
      changed_ = cudaSetDevice(device) == cudaSuccess;
    }
  }
  ~OnDevice() {
    if (changed_) (void)cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

// The start of a segment that is being allocated: the block that follows at once is the runtime's
// fresh memory, which holds the poison already. 0: none. One for each device:
// each has an allocator's lock of its own.
std::array<std::uintptr_t, C10_COMPILE_TIME_MAX_GPUS> fresh_segments{};

// Runs under the allocator's lock, also from destructors: it reports nothing, and leaves no error
// behind that the allocator would find.
void on_trace(const caching::TraceEntry& entry) {
  const bool handed_out = entry.action_ == caching::TraceEntry::ALLOC;
  const std::uintptr_t fresh =
      std::exchange(fresh_segments[static_cast<std::size_t>(entry.device_)],
                    entry.action_ == caching::TraceEntry::SEGMENT_ALLOC ? entry.addr_ : 0);
  if (!enabled || (!handed_out && entry.action_ != caching::TraceEntry::FREE_COMPLETED)) return;
  const OnDevice guard(entry.device_);
  const auto stream = static_cast<cudaStream_t>(entry.stream_);
  // A capture records the fill all the same: every replay hands the block out again.
  if (handed_out && fresh == entry.addr_ && !capture_of(stream).id) return;
  if (!may_fill(stream, entry.mempool_)) return;
  void* const block = reinterpret_cast<void*>(entry.addr_);
  if (cudaMemsetAsync(block, pattern, entry.size_, stream) != cudaSuccess) (void)cudaGetLastError();
}

}  // namespace

// Other backends have no trackers, and their blocks no poison.
void attach_block_poison() {
  several_devices = c10::cuda::device_count() > 1;
  if (caching::get()->name() == "native") caching::attachAllocatorTraceTracker(on_trace);
}

void set_block_poison(std::uint8_t byte) { pattern = byte; }

bool set_block_poison_enabled(bool on) { return enabled.exchange(on); }

void poison_bool(void* fresh, std::size_t bytes) {
  if (!enabled || bytes == 0) return;
  C10_CUDA_CHECK(cudaMemsetAsync(fresh, pattern & 1, bytes, c10::cuda::getCurrentCUDAStream()));
}

void note_capture(unsigned long long id, c10::MempoolId_t pool) {
  const std::lock_guard lock(captures().mutex);
  captures().pools[id] = pool;
}

void forget_capture(unsigned long long id) {
  const std::lock_guard lock(captures().mutex);
  captures().pools.erase(id);
}

}  // namespace slotgraph::device::host

namespace slotgraph::device {

BlockContentsKept::BlockContentsKept() : before_(host::set_block_poison_enabled(false)) {}
BlockContentsKept::~BlockContentsKept() { host::set_block_poison_enabled(before_); }

}  // namespace slotgraph::device

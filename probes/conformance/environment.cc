#include "probes/conformance/environment.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>

#include "core/device/device.h"

namespace slotgraph::conformance {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

constexpr c10::CaptureId_t kFirstPool = c10::CaptureId_t{1} << 41;

// The allocator orders free blocks by their streams' handles first.
std::vector<c10::cuda::CUDAStream> ordered_streams() {
  std::vector<c10::cuda::CUDAStream> streams{c10::cuda::getDefaultCUDAStream()};
  while (streams.size() < kStreams) streams.push_back(c10::cuda::getStreamFromPool());
  std::sort(streams.begin(), streams.end(), [](const auto& a, const auto& b) {
    return reinterpret_cast<std::uintptr_t>(a.stream()) <
           reinterpret_cast<std::uintptr_t>(b.stream());
  });
  return streams;
}

}  // namespace

c10::MempoolId_t pool_id(int pool) { return {0, pool == 0 ? 0 : kFirstPool + pool}; }

int pool_ordinal(c10::MempoolId_t id) {
  return id.second < kFirstPool ? 0 : static_cast<int>(id.second - kFirstPool);
}

Environment& Environment::instance() {
  static Environment& instance = *new Environment();
  return instance;
}

Environment::Environment()
    : streams_((device::initialise(), ordered_streams())),
      total_bytes_(caching::get()->getMemoryInfo(0).second),
      watcher_(&Watcher::attach([this](const void* handle) { return stream_ordinal(handle); },
                                pool_ordinal)) {
  device::configure({.memory_bytes = 1000 * kMiB});
  caching::get()->createOrIncrefPool(0, pool_id(kIdlePool));
  make_events();
}

int Environment::stream_ordinal(const void* handle) const {
  const auto found = std::find_if(streams_.begin(), streams_.end(),
                                  [&](const auto& stream) { return stream.stream() == handle; });
  return static_cast<int>(found - streams_.begin());
}

// The allocator keeps events for ever once it has made them. With more of them than a program needs
// at a time, no program makes one, and none depends on those before it.
void Environment::make_events() const {
  constexpr int kEvents = 512;
  std::vector<at::DataPtr> blocks;
  for (int i = 0; i < kEvents; ++i) {
    blocks.push_back(caching::get()->allocate(512));
    caching::recordStream(blocks.back(), stream(1));
  }
  blocks.clear();
  device::synchronise();
  caching::emptyCache();
}

}  // namespace slotgraph::conformance

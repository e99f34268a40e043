#include "core/memory/private_pool.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <atomic>
#include <thread>

#include "core/device/device.h"

namespace slotgraph {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

// libtorch numbers its own pools from 1 in either half of the id; ours start where it will not
// come.
c10::MempoolId_t next_id() {
  static std::atomic<std::uint64_t> last{std::uint64_t{1} << 40};
  return {0, ++last};
}

}  // namespace

PrivatePool::PrivatePool() : id_(next_id()), device_(c10::cuda::current_device()) {
  device::open_pool(id_);
  caching::createOrIncrefPool(device_, id_);
}

PrivatePool::~PrivatePool() {
  caching::releasePool(device_, id_);
  device::close_pool(id_);
}

AllocationScope::AllocationScope(const PrivatePool& pool)
    : id_(pool.id()), device_(c10::cuda::current_device()) {
  caching::beginAllocateToPool(
      device_, id_,
      [thread = std::this_thread::get_id(), stream = c10::cuda::getCurrentCUDAStream().stream()](
          cudaStream_t other) { return std::this_thread::get_id() == thread && other == stream; });
}

AllocationScope::~AllocationScope() {
  caching::endAllocateToPool(device_, id_);
  caching::releasePool(device_, id_);
}

Slab::Slab(const PrivatePool& pool, std::size_t bytes) : bytes_(bytes) {
  const AllocationScope scope(pool);
  at::DataPtr memory(nullptr, at::Device(at::kCUDA, c10::cuda::current_device()));
  if (bytes > 0) memory = caching::get()->allocate(bytes);
  memory_ = c10::Storage(c10::Storage::use_byte_size_t(), bytes, std::move(memory),
                         /*allocator=*/nullptr, /*resizable=*/false);
}

bool Slab::contains(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  return bytes_ > 0 && byte >= base() && byte < base() + bytes_;
}

}  // namespace slotgraph

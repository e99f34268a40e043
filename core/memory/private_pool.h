// Scopes over the caching allocator's private pools. Every begin has its end and its release, on
// every path.
#ifndef CORE_MEMORY_PRIVATE_POOL_H_
#define CORE_MEMORY_PRIVATE_POOL_H_

#include <c10/core/Storage.h>
#include <c10/cuda/CUDAStream.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace slotgraph {

// A private pool with a fresh id on the current device. Holds one use count; graphs hold their own.
// Its segments go back to the driver with the next emptyCache after the last count and the last
// block are gone.
class PrivatePool {
 public:
  PrivatePool();
  ~PrivatePool();
  PrivatePool(const PrivatePool&) = delete;
  PrivatePool& operator=(const PrivatePool&) = delete;

  c10::MempoolId_t id() const { return id_; }

 private:
  c10::MempoolId_t id_;
  c10::DeviceIndex device_;
};

// While alive, allocations of this thread on the current stream come from the pool. Not for
// captures: a graph opens its own scope. Must die before another scope of the same pool opens.
class AllocationScope {
 public:
  explicit AllocationScope(const PrivatePool& pool);
  ~AllocationScope();
  AllocationScope(const AllocationScope&) = delete;
  AllocationScope& operator=(const AllocationScope&) = delete;

 private:
  c10::MempoolId_t id_;
  c10::DeviceIndex device_;
};

// One block of pool memory that tensors and placed allocations refer to. The last reference frees
// it.
class Slab {
 public:
  // `bytes` may be 0: the slab then has no address. Throws c10::OutOfMemoryError.
  Slab(const PrivatePool& pool, std::size_t bytes);

  std::byte* base() const { return static_cast<std::byte*>(memory_.mutable_data()); }
  std::size_t bytes() const { return bytes_; }
  bool contains(const void* address) const;
  // What owns the block: a checkpoint detaches it and attaches it again, at the same address.
  const c10::Storage& storage() const { return memory_; }

 private:
  c10::Storage memory_;
  std::size_t bytes_;
};

// A part of a slab: the arena of one colour, or one set of staging buffers.
struct Arena {
  std::shared_ptr<Slab> slab;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::byte* base() const { return slab->base() + offset; }
};

}  // namespace slotgraph

#endif  // CORE_MEMORY_PRIVATE_POOL_H_

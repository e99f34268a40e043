#include "core/memory/placing_allocator.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <unordered_map>

#include "core/error.h"
#include "core/memory/forwarding_allocator.h"

namespace slotgraph {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

// Why counting finds the survivors: an allocator is told a size and nothing else, but a module that
// does the same in every run allocates in the same order, so the number of an allocation says which
// one it is. Allocations of other threads, and of streams outside the capture, would shift the
// numbers and are not counted. If a size differs, the module did something else: the allocation is
// born in the pool as any other, and whoever made the plan finds it when he compares the recording.
// Only placed blocks have a deleter of ours. The others keep the native one, by which checkpoints
// know owners, and the allocator's trace tracker reports when they are freed.

// Where the blocks of all recordings lie: the trace tracker reports frees by address.
class LiveBlocks {
 public:
  void add(const void* address, std::weak_ptr<Recording> recording, std::size_t index) {
    const std::lock_guard lock(mutex_);
    blocks_[address] = {std::move(recording), index};
  }
  std::pair<std::shared_ptr<Recording>, std::size_t> take(const void* address) {
    const std::lock_guard lock(mutex_);
    const auto it = blocks_.find(address);
    if (it == blocks_.end()) return {};
    const auto found = it->second;
    blocks_.erase(it);
    return {found.first.lock(), found.second};
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, std::pair<std::weak_ptr<Recording>, std::size_t>> blocks_;
};

std::atomic<Session*> active{nullptr};

}  // namespace

class PlacingAllocator final : public ForwardingAllocator {
 public:
  static PlacingAllocator& instance() {
    static PlacingAllocator* const allocator = new PlacingAllocator();
    return *allocator;
  }

  void install(Session* session) {
    Session* none = nullptr;
    if (!active.compare_exchange_strong(none, session)) {
      throw Error(Error::kInternal, {"G01", "placing allocator", "another session",
                                     "one session at a time in a process",
                                     "do not call graph_callables while another call runs"});
    }
    thread_ = std::this_thread::get_id();
    native_ = caching::allocator.exchange(this);
  }
  void uninstall() {
    caching::allocator.store(native_);
    active.store(nullptr);
  }

  c10::DataPtr allocate(std::size_t bytes) override {
    Session* const session = active.load();
    if (!session || bytes == 0 || thread_ != std::this_thread::get_id() || !session->counts()) {
      return native_->allocate(bytes);
    }
    const auto& recording = session->recording_;
    const std::size_t index = recording->allocations_.size();
    const auto& entries = session->plan_.entries;
    if (index < entries.size() && entries[index].offset && entries[index].bytes == bytes) {
      return place(*session, *entries[index].offset, bytes);
    }
    c10::DataPtr block = native_->allocate(bytes);
    live_.add(block.get(), recording, recording->add({bytes, block.get(), false, true}));
    return block;
  }

 private:
  // What a placed block's storage holds: the arena must outlive the block.
  struct PlacedBlock {
    std::shared_ptr<Slab> slab;
    std::weak_ptr<Recording> recording;
    std::size_t index;
  };

  PlacingAllocator() : ForwardingAllocator(caching::get()) {
    native_->attachAllocatorTraceTracker([this](const caching::TraceEntry& entry) {
      if (entry.action_ != caching::TraceEntry::FREE_REQUESTED) return;
      const auto [recording, index] = live_.take(reinterpret_cast<const void*>(entry.addr_));
      if (recording) recording->mark_freed(index);
    });
  }

  c10::DataPtr place(Session& session, std::size_t offset, std::size_t bytes) {
    const Arena& arena = session.plan_.arena;
    if (offset + bytes > arena.bytes) {
      throw Error(Error::kInternal, {"G02", "placing allocator",
                                     fmt::format("a survivor at {} of {} bytes", offset, bytes),
                                     fmt::format("one inside its arena of {} bytes", arena.bytes),
                                     "report a defect of slotgraph"});
    }
    void* const address = arena.base() + offset;
    const c10::Device device(c10::kCUDA, c10::cuda::current_device());
    const std::size_t index = session.recording_->add({bytes, address, true, true});
    auto* const block = new PlacedBlock{arena.slab, session.recording_, index};
    const auto release = [](void* context) {
      const std::unique_ptr<PlacedBlock> owned(static_cast<PlacedBlock*>(context));
      if (const auto recording = owned->recording.lock()) recording->mark_freed(owned->index);
    };
    return {address, block, release, device};
  }

  std::thread::id thread_;
  LiveBlocks live_;
};

std::vector<Allocation> Recording::snapshot() const {
  const std::lock_guard lock(mutex_);
  return allocations_;
}

bool Recording::owns(const void* address) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(allocations_.rbegin(), allocations_.rend(),
                     [&](const Allocation& a) { return a.alive && a.address == address; });
}

std::size_t Recording::add(Allocation allocation) {
  const std::lock_guard lock(mutex_);
  allocations_.push_back(allocation);
  return allocations_.size() - 1;
}

void Recording::mark_freed(std::size_t index) {
  const std::lock_guard lock(mutex_);
  allocations_[index].alive = false;
}

Session::Session() { PlacingAllocator::instance().install(this); }

Session::Session(const device::Graph& graph, PlacementPlan plan)
    : graph_(&graph), plan_(std::move(plan)) {
  PlacingAllocator::instance().install(this);
}

Session::~Session() { PlacingAllocator::instance().uninstall(); }

const Recording* Session::active_recording() {
  const Session* const session = active.load();
  return session ? session->recording_.get() : nullptr;
}

bool Session::counts() const {
  return !graph_ || graph_->captures(c10::cuda::getCurrentCUDAStream());
}

}  // namespace slotgraph

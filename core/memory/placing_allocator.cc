#include "core/memory/placing_allocator.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <unordered_map>

#include "core/error.h"

namespace slotgraph {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

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

class PlacingAllocator final : public caching::CUDAAllocator {
 public:
  static PlacingAllocator& instance() {
    static PlacingAllocator* const allocator = new PlacingAllocator();
    return *allocator;
  }

  void install(Session* session) {
    Session* none = nullptr;
    if (!active.compare_exchange_strong(none, session)) {
      throw Error({"G01", "placing allocator", "another session",
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

  c10::DeleterFnPtr raw_deleter() const override { return native_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t n) const override {
    native_->copy_data(to, from, n);
  }
  bool is_simple_data_ptr(const c10::DataPtr& p) const override {
    return native_->is_simple_data_ptr(p);
  }
  bool initialized() override { return native_->initialized(); }
  void emptyCache(c10::MempoolId_t pool) override { native_->emptyCache(pool); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex d) override {
    return native_->getDeviceStats(d);
  }
  void resetAccumulatedStats(c10::DeviceIndex d) override { native_->resetAccumulatedStats(d); }
  void resetPeakStats(c10::DeviceIndex d) override { native_->resetPeakStats(d); }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex d) override {
    return native_->getMemoryInfo(d);
  }
  void* raw_alloc(std::size_t n) override { return native_->raw_alloc(n); }
  void* raw_alloc_with_stream(std::size_t n, cudaStream_t s) override {
    return native_->raw_alloc_with_stream(n, s);
  }
  void raw_delete(void* p) override { native_->raw_delete(p); }
  void init(int devices) override { native_->init(devices); }
  double getMemoryFraction(c10::DeviceIndex d) override { return native_->getMemoryFraction(d); }
  void setMemoryFraction(double fraction, c10::DeviceIndex d) override {
    native_->setMemoryFraction(fraction, d);
  }
  std::vector<caching::StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex d) override {
    return native_->getExpandableSegmentSizes(d);
  }
  void enable(bool on) override { native_->enable(on); }
  bool isEnabled() const override { return native_->isEnabled(); }
  void cacheInfo(c10::DeviceIndex d, std::size_t* largest) override {
    native_->cacheInfo(d, largest);
  }
  void* getBaseAllocation(void* p, std::size_t* size) override {
    return native_->getBaseAllocation(p, size);
  }
  void recordStream(const c10::DataPtr& p, c10::cuda::CUDAStream s) override {
    native_->recordStream(p, s);
  }
  caching::SnapshotInfo snapshot(c10::MempoolId_t pool, bool traces) override {
    return native_->snapshot(pool, traces);
  }
  void beginAllocateToPool(c10::DeviceIndex d, c10::MempoolId_t pool,
                           std::function<bool(cudaStream_t)> filter) override {
    native_->beginAllocateToPool(d, pool, std::move(filter));
  }
  void endAllocateToPool(c10::DeviceIndex d, c10::MempoolId_t pool) override {
    native_->endAllocateToPool(d, pool);
  }
  void releasePool(c10::DeviceIndex d, c10::MempoolId_t pool) override {
    native_->releasePool(d, pool);
  }
  int getPoolUseCount(c10::DeviceIndex d, c10::MempoolId_t pool) override {
    return native_->getPoolUseCount(d, pool);
  }
  void createOrIncrefPool(c10::DeviceIndex d, c10::MempoolId_t pool,
                          std::shared_ptr<CUDAAllocator> own) override {
    native_->createOrIncrefPool(d, pool, std::move(own));
  }
  void setUseOnOOM(c10::DeviceIndex d, c10::MempoolId_t pool, bool use) override {
    native_->setUseOnOOM(d, pool, use);
  }
  void setNoSplit(c10::DeviceIndex d, c10::MempoolId_t pool) override {
    native_->setNoSplit(d, pool);
  }
  bool checkPoolLiveAllocations(c10::DeviceIndex d, c10::MempoolId_t pool,
                                const std::unordered_set<void*>& expected) override {
    return native_->checkPoolLiveAllocations(d, pool, expected);
  }
  caching::ShareableHandle shareIpcHandle(void* p) override { return native_->shareIpcHandle(p); }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override {
    return native_->getIpcDevPtr(std::move(handle));
  }
  bool isHistoryEnabled() override { return native_->isHistoryEnabled(); }
  void recordHistory(bool on, caching::CreateContextFn recorder, std::size_t most,
                     caching::RecordContext when, bool clear,
                     const std::vector<std::string>& skipped) override {
    native_->recordHistory(on, recorder, most, when, clear, skipped);
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& a) override {
    native_->recordAnnotation(a);
  }
  void pushCompileContext(std::string& text) override { native_->pushCompileContext(text); }
  void popCompileContext() override { native_->popCompileContext(); }
  void setUserMetadata(const std::string& text) override { native_->setUserMetadata(text); }
  std::string getUserMetadata() override { return native_->getUserMetadata(); }
  void attachOutOfMemoryObserver(caching::OutOfMemoryObserver o) override {
    native_->attachOutOfMemoryObserver(std::move(o));
  }
  void attachAllocatorTraceTracker(caching::AllocatorTraceTracker t) override {
    native_->attachAllocatorTraceTracker(std::move(t));
  }
  void enablePeerAccess(c10::DeviceIndex d, c10::DeviceIndex peer) override {
    native_->enablePeerAccess(d, peer);
  }
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device, std::size_t n,
                          cudaStream_t stream, bool peer) override {
    return native_->memcpyAsync(to, to_device, from, from_device, n, stream, peer);
  }
  std::shared_ptr<caching::AllocatorState> getCheckpointState(c10::DeviceIndex d,
                                                              c10::MempoolId_t pool) override {
    return native_->getCheckpointState(d, pool);
  }
  caching::CheckpointDelta setCheckpointPoolState(
      c10::DeviceIndex d, std::shared_ptr<caching::AllocatorState> state) override {
    return native_->setCheckpointPoolState(d, std::move(state));
  }
  std::string name() override { return native_->name(); }

 private:
  // What a placed block's storage holds: the arena must outlive the block.
  struct PlacedBlock {
    std::shared_ptr<Slab> slab;
    std::weak_ptr<Recording> recording;
    std::size_t index;
  };

  PlacingAllocator() : native_(caching::get()) {
    native_->attachAllocatorTraceTracker([this](const caching::TraceEntry& entry) {
      if (entry.action_ != caching::TraceEntry::FREE_REQUESTED) return;
      const auto [recording, index] = live_.take(reinterpret_cast<const void*>(entry.addr_));
      if (recording) recording->mark_freed(index);
    });
  }

  c10::DataPtr place(Session& session, std::size_t offset, std::size_t bytes) {
    const Arena& arena = session.plan_.arena;
    if (offset + bytes > arena.bytes) {
      throw Error({"G02", "placing allocator",
                   fmt::format("a survivor at {} of {} bytes", offset, bytes),
                   fmt::format("one inside its arena of {} bytes", arena.bytes),
                   "report a defect of slotgraph"});
    }
    void* const address = arena.base() + offset;
    const std::size_t index = session.recording_->add({bytes, address, true, true});
    auto* const block = new PlacedBlock{arena.slab, session.recording_, index};
    const auto release = [](void* context) {
      const std::unique_ptr<PlacedBlock> owned(static_cast<PlacedBlock*>(context));
      if (const auto recording = owned->recording.lock()) recording->mark_freed(owned->index);
    };
    return {address, block, release, c10::Device(c10::kCUDA, c10::cuda::current_device())};
  }

  caching::CUDAAllocator* native_;
  std::thread::id thread_;
  LiveBlocks live_;
};

std::vector<Allocation> Recording::snapshot() const {
  const std::lock_guard lock(mutex_);
  return allocations_;
}

bool Recording::any_alive() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(allocations_.begin(), allocations_.end(),
                     [](const Allocation& a) { return a.alive; });
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

bool Session::counts() const {
  return !graph_ || graph_->captures(c10::cuda::getCurrentCUDAStream());
}

}  // namespace slotgraph

// A CUDA allocator that passes everything on to another one: a base for those that change a part.
#ifndef CORE_MEMORY_FORWARDING_ALLOCATOR_H_
#define CORE_MEMORY_FORWARDING_ALLOCATOR_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace slotgraph {

// The other allocator must outlive this one.
class ForwardingAllocator : public c10::cuda::CUDACachingAllocator::CUDAAllocator {
 public:
  explicit ForwardingAllocator(c10::cuda::CUDACachingAllocator::CUDAAllocator* native)
      : native_(native) {}

  c10::DataPtr allocate(std::size_t bytes) override { return native_->allocate(bytes); }
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
  std::vector<c10::cuda::CUDACachingAllocator::StreamSegmentSize> getExpandableSegmentSizes(
      c10::DeviceIndex d) override {
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
  c10::cuda::CUDACachingAllocator::SnapshotInfo snapshot(c10::MempoolId_t pool,
                                                         bool traces) override {
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
  c10::cuda::CUDACachingAllocator::ShareableHandle shareIpcHandle(void* p) override {
    return native_->shareIpcHandle(p);
  }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override {
    return native_->getIpcDevPtr(std::move(handle));
  }
  bool isHistoryEnabled() override { return native_->isHistoryEnabled(); }
  void recordHistory(bool on, c10::cuda::CUDACachingAllocator::CreateContextFn recorder,
                     std::size_t most, c10::cuda::CUDACachingAllocator::RecordContext when,
                     bool clear, const std::vector<std::string>& skipped) override {
    native_->recordHistory(on, recorder, most, when, clear, skipped);
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& a) override {
    native_->recordAnnotation(a);
  }
  void pushCompileContext(std::string& text) override { native_->pushCompileContext(text); }
  void popCompileContext() override { native_->popCompileContext(); }
  void setUserMetadata(const std::string& text) override { native_->setUserMetadata(text); }
  std::string getUserMetadata() override { return native_->getUserMetadata(); }
  void attachOutOfMemoryObserver(c10::cuda::CUDACachingAllocator::OutOfMemoryObserver o) override {
    native_->attachOutOfMemoryObserver(std::move(o));
  }
  void attachAllocatorTraceTracker(
      c10::cuda::CUDACachingAllocator::AllocatorTraceTracker t) override {
    native_->attachAllocatorTraceTracker(std::move(t));
  }
  void enablePeerAccess(c10::DeviceIndex d, c10::DeviceIndex peer) override {
    native_->enablePeerAccess(d, peer);
  }
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device, std::size_t n,
                          cudaStream_t stream, bool peer) override {
    return native_->memcpyAsync(to, to_device, from, from_device, n, stream, peer);
  }
  std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> getCheckpointState(
      c10::DeviceIndex d, c10::MempoolId_t pool) override {
    return native_->getCheckpointState(d, pool);
  }
  c10::cuda::CUDACachingAllocator::CheckpointDelta setCheckpointPoolState(
      c10::DeviceIndex d,
      std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> state) override {
    return native_->setCheckpointPoolState(d, std::move(state));
  }
  std::string name() override { return native_->name(); }

 protected:
  c10::cuda::CUDACachingAllocator::CUDAAllocator* native_;
};

}  // namespace slotgraph

#endif  // CORE_MEMORY_FORWARDING_ALLOCATOR_H_

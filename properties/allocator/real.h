// The real caching allocator as a subject, on two devices of the emulated runtime.
#ifndef PROPERTIES_ALLOCATOR_REAL_H_
#define PROPERTIES_ALLOCATOR_REAL_H_

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/device/block_contents.h"
#include "core/emulation/failing_call.h"
#include "properties/allocator/subject.h"
#include "properties/allocator/two_threads.h"

namespace slotgraph::allocator {

// One at a time. Begins with an allocator that holds nothing (checked), default settings and
// private pools that nobody has used; the destructor gives everything back. Counters are those
// since the beginning.
class Real final : public Subject {
 public:
  Real();
  ~Real() override;
  Real(const Real&) = delete;
  Real& operator=(const Real&) = delete;

  // Where the first segment of each device lies.
  const std::array<Address, kDevices>& bases() const { return bases_; }

  void switch_to(int thread) override { thread_ = thread; }
  Reply allocate(Stream stream, std::size_t bytes) override;
  Reply free(Address address) override;
  Reply record_stream(Address live, Stream stream) override;
  Reply begin_scope(int device, int pool, Filter filter) override;
  Reply end_scope(int device, int pool) override;
  Reply retain(int device, int pool) override;
  Reply release(int device, int pool) override;
  Reply empty_cache(int pool) override;
  Reply forbid_splits(int device, int pool) override;
  Reply use_on_oom(int device, int pool, bool use) override;
  Reply take_checkpoint(int device, int pool) override;
  Reply restore(int checkpoint) override;
  Reply mark(Stream stream) override;
  Reply wait(int mark) override;
  Reply fail_next_segment(bool out_of_memory) override;
  Reply configure(const Settings& settings) override;
  Reply limit(int device, double fraction) override;
  DeviceStates states() override;

 private:
  c10::cuda::CUDAStream stream(Stream name) const;
  c10::MempoolId_t id(int pool) const { return {0, first_pool_ + static_cast<unsigned>(pool)}; }
  Reply attempt(const std::function<Reply()>& call);
  std::map<std::string, std::int64_t> counters(int device) const;
  DeviceState states(int device, const std::vector<c10::CachingDeviceAllocator::SegmentInfo>&);

  TwoThreads threads_;
  device::BlockContentsKept no_poison_;  // poison is queued work, which the model does not know
  c10::CaptureId_t first_pool_;
  std::array<Address, kDevices> bases_{};
  std::array<std::map<std::string, std::int64_t>, kDevices> counters_before_;
  std::vector<std::vector<c10::cuda::CUDAStream>> streams_;
  int thread_ = 0;

  std::map<Address, at::DataPtr> owners_;
  std::set<std::pair<int, int>> pools_;  // device and number of those that may exist
  struct Checkpoint {
    int device;
    std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> state;
  };
  std::vector<Checkpoint> checkpoints_;
  std::vector<cudaEvent_t> marks_;
  std::optional<testing::FailingCall> failing_;
};

// Makes the process usable: two devices. Before anything else of CUDA.
void initialise_two_devices();

}  // namespace slotgraph::allocator

#endif  // PROPERTIES_ALLOCATOR_REAL_H_

// What all programs of a process share: streams, names of pools, the watcher.
#ifndef PROBES_CONFORMANCE_ENVIRONMENT_H_
#define PROBES_CONFORMANCE_ENVIRONMENT_H_

#include <c10/cuda/CUDAStream.h>

#include <vector>

#include "core/device/block_contents.h"
#include "probes/conformance/program.h"
#include "probes/conformance/watcher.h"

namespace slotgraph::conformance {

constexpr int kIdlePool = kPools + 1;  // a pool that no program uses, and nobody releases

c10::MempoolId_t pool_id(int pool);
int pool_ordinal(c10::MempoolId_t id);

// One in a process. Throws slotgraph::Error with rule D02 if there is no device.
class Environment {
 public:
  static Environment& instance();

  c10::cuda::CUDAStream stream(int ordinal) const { return streams_[ordinal]; }
  int stream_ordinal(const void* handle) const;
  Watcher& watcher() { return *watcher_; }
  // What the allocator takes a memory fraction of: the device's memory when it was initialised.
  std::size_t total_bytes() const { return total_bytes_; }

 private:
  Environment();
  void make_events() const;

  std::vector<c10::cuda::CUDAStream> streams_;
  std::size_t total_bytes_;
  device::BlockContentsKept kept_;  // filling a block would be a runtime call
  Watcher* watcher_;
};

}  // namespace slotgraph::conformance

#endif  // PROBES_CONFORMANCE_ENVIRONMENT_H_

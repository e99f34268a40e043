// What the tests of the host device share: reproducible values and comparison by bytes.
#ifndef CORE_DEVICE_HOST_TEST_SUPPORT_H_
#define CORE_DEVICE_HOST_TEST_SUPPORT_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <cstdint>
#include <functional>
#include <string>

#include "core/device/device.h"

namespace slotgraph::device {

// A contiguous float CPU tensor of values in [-1, 1) from an integer generator: the same on every
// machine.
at::Tensor values(at::IntArrayRef sizes, std::uint64_t seed = 1);

// True if both have the same type, sizes and bytes (in the order of a contiguous tensor). Waits for
// tensors of the device.
bool same_bytes(const at::Tensor& a, const at::Tensor& b);

// The message of the exception that `call` throws; empty if it throws none.
std::string error_of(const std::function<void()>& call);

// Sets a simulation for one scope: waits for queued work, then goes back to the defaults.
class ScopedSimulation {
 public:
  explicit ScopedSimulation(const Simulation& simulation);
  ~ScopedSimulation();
  ScopedSimulation(const ScopedSimulation&) = delete;
  ScopedSimulation& operator=(const ScopedSimulation&) = delete;
};

// A memory pool of the current device for one scope.
class ScopedPool {
 public:
  ScopedPool();
  ~ScopedPool();
  ScopedPool(const ScopedPool&) = delete;
  ScopedPool& operator=(const ScopedPool&) = delete;
  c10::MempoolId_t id() const { return id_; }

 private:
  c10::MempoolId_t id_;
};

// Captures `work` on the current stream, which is not the default stream, and abandons the capture
// if it throws.
std::unique_ptr<Graph> capture(c10::MempoolId_t pool, const std::function<void()>& work);

}  // namespace slotgraph::device

#endif  // CORE_DEVICE_HOST_TEST_SUPPORT_H_

// Device memory at addresses of our own choice, by the driver's virtual memory functions: the same
// policies and the same addresses as the emulated runtime.
#ifndef CORE_DEVICE_CUDA_PLACED_MEMORY_H_
#define CORE_DEVICE_CUDA_PLACED_MEMORY_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/device/device.h"
#include "core/emulation/address_space.h"

namespace slotgraph::device::cuda {

// One for the process; thread-safe; never destroyed. Physical memory that was given back is kept
// for later segments of the same size: making it is what costs time.
class PlacedMemory {
 public:
  static PlacedMemory& instance();

  // How later segments are placed, if they are. Before the first call none is: who asks for memory
  // before the device is initialised gets the driver's.
  void place(const Simulation& simulation);
  bool places() const { return places_; }

  // A segment on the device. Nothing waits, and no runtime call is made.
  cudaError_t allocate(int device, std::size_t bytes, void** pointer);
  // Nothing if the pointer is no segment of this memory. Nothing on the device may use it.
  std::optional<cudaError_t> free(void* pointer);
  bool owns(const void* pointer);
  // Counts a segment of the driver's.
  void note(int device, const void* pointer, std::size_t bytes);
  void forget(const void* pointer);

  struct Use {
    std::size_t segments = 0;  // bytes
    std::size_t physical = 0;  // the same, with what is kept
    std::size_t capacity = 0;
  };
  Use use();  // of the current device; no runtime call

 private:
  PlacedMemory() = default;
  struct Segment {
    int device;
    std::size_t bytes;
    CUmemGenericAllocationHandle memory;
  };
  emulation::AddressSpace* space(int device);
  std::optional<CUmemGenericAllocationHandle> make(int device, std::size_t bytes);
  void drop_kept();

  std::mutex mutex_;
  bool places_ = false;
  emulation::AddressPolicy policy_ = emulation::AddressPolicy::kAscending;
  emulation::Random random_{0};
  std::size_t capacity_ = 0;
  std::map<int, emulation::AddressSpace> spaces_;
  std::map<std::uintptr_t, Segment> segments_;
  std::map<std::uintptr_t, std::pair<int, std::size_t>> others_;  // the driver's
  std::map<int, std::size_t> used_;
  std::map<int, std::size_t> kept_bytes_;
  std::map<std::pair<int, std::size_t>, std::vector<CUmemGenericAllocationHandle>> kept_;
};

}  // namespace slotgraph::device::cuda

#endif  // CORE_DEVICE_CUDA_PLACED_MEMORY_H_

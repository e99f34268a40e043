// Device segments and pinned host memory.
#ifndef CORE_EMULATION_MEMORY_H_
#define CORE_EMULATION_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "core/emulation/address_space.h"

namespace slotgraph::emulation {

// Maps device memory at fixed addresses, one disjoint range for each device. A fresh segment is a
// copy-on-write mapping of a file that holds the poison byte, so that it costs no fill and no
// memory until it is written. A freed segment is inaccessible: a late access ends the process with
// SIGSEGV. Not thread-safe.
class DeviceMemory {
 public:
  static constexpr int kMaxDevices = 8;

  DeviceMemory();

  enum class Result { kOk, kOutOfMemory, kUnknownPointer };
  Result allocate(int device, std::size_t bytes, void** pointer);
  Result free(void* pointer);

  // The device that owns the byte, or -1.
  int device_of(const void* pointer) const;
  // True if [pointer, pointer + bytes) lies in one live segment.
  bool contains(const void* pointer, std::size_t bytes) const;

  std::size_t used(int device) const { return used_[device]; }
  std::size_t segments() const { return segments_.size(); }

  std::size_t capacity = std::size_t{8} << 30;
  AddressPolicy policy = AddressPolicy::kAscending;
  void set_seed(std::uint64_t seed) { random_ = Random(seed); }
  void set_poison(std::uint8_t byte) { poison_ = byte; }

 private:
  struct Segment {
    int device;
    std::size_t bytes;
  };
  int poison_file();

  std::map<std::uintptr_t, Segment> segments_;
  std::map<int, AddressSpace> spaces_;
  std::size_t used_[kMaxDevices] = {};
  std::uint8_t poison_ = 0xFF;
  // The file descriptor of each byte, open for the life of the process.
  std::map<std::uint8_t, int> poison_files_;
  Random random_{0};
};

class PinnedMemory {
 public:
  void* allocate(std::size_t bytes);  // null if the host has no memory left
  bool free(void* pointer);
  bool contains(const void* pointer) const;
  std::size_t used() const { return used_; }

 private:
  std::map<std::uintptr_t, std::size_t> ranges_;
  std::size_t used_ = 0;
};

}  // namespace slotgraph::emulation

#endif  // CORE_EMULATION_MEMORY_H_

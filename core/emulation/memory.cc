#include "core/emulation/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

namespace slotgraph::emulation {
namespace {

constexpr std::size_t kPoisonBytes = std::size_t{2} << 20;

}  // namespace

DeviceMemory::DeviceMemory() {
  for (int device = 0; device < kMaxDevices; ++device) {
    spaces_.emplace(device, AddressSpace(AddressSpace::base(device), AddressSpace::kRange));
  }
}

int DeviceMemory::poison_file() {
  const auto known = poison_files_.find(poison_);
  if (known != poison_files_.end()) return known->second;
  const int file = memfd_create("slotgraph poison", MFD_CLOEXEC);
  const std::vector<std::uint8_t> fill(kPoisonBytes, poison_);
  if (file < 0 || write(file, fill.data(), fill.size()) != static_cast<ssize_t>(fill.size()))
    return -1;
  poison_files_[poison_] = file;
  return file;
}

DeviceMemory::Result DeviceMemory::allocate(int device, std::size_t bytes, void** pointer) {
  if (bytes > capacity) return Result::kOutOfMemory;
  const std::size_t size = AddressSpace::rounded(bytes);
  if (used_[device] + size > capacity) return Result::kOutOfMemory;
  const int file = poison_file();
  if (file < 0) return Result::kOutOfMemory;
  AddressSpace& space = spaces_.at(device);
  const auto address = space.take(size, policy, random_);
  if (!address) return Result::kOutOfMemory;
  for (std::size_t done = 0; done < size; done += kPoisonBytes) {
    void* const place = reinterpret_cast<void*>(*address + done);
    const void* const mapped = mmap(place, kPoisonBytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0);
    if (mapped == MAP_FAILED) {
      munmap(reinterpret_cast<void*>(*address), size);
      space.give_back(*address, size);
      return Result::kOutOfMemory;
    }
  }
  segments_[*address] = {device, size};
  used_[device] += size;
  *pointer = reinterpret_cast<void*>(*address);
  return Result::kOk;
}

DeviceMemory::Result DeviceMemory::free(void* pointer) {
  const auto it = segments_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (it == segments_.end()) return Result::kUnknownPointer;
  const auto [device, size] = it->second;
  munmap(pointer, size);
  spaces_.at(device).give_back(it->first, size);
  used_[device] -= size;
  segments_.erase(it);
  return Result::kOk;
}

int DeviceMemory::device_of(const void* pointer) const {
  return contains(pointer, 1)
             ? std::prev(segments_.upper_bound(reinterpret_cast<std::uintptr_t>(pointer)))
                   ->second.device
             : -1;
}

bool DeviceMemory::contains(const void* pointer, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  auto it = segments_.upper_bound(address);
  if (it == segments_.begin()) return false;
  --it;
  const std::size_t offset = address - it->first;
  return offset < it->second.bytes && bytes <= it->second.bytes - offset;
}

void* PinnedMemory::allocate(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  const std::size_t size = std::max((bytes + page - 1) / page, std::size_t{1}) * page;
  void* const pointer = std::aligned_alloc(page, size);
  if (!pointer) return nullptr;
  ranges_[reinterpret_cast<std::uintptr_t>(pointer)] = size;
  used_ += size;
  return pointer;
}

bool PinnedMemory::free(void* pointer) {
  const auto it = ranges_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (it == ranges_.end()) return false;
  used_ -= it->second;
  ranges_.erase(it);
  std::free(pointer);
  return true;
}

bool PinnedMemory::contains(const void* pointer) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return false;
  --it;
  return address - it->first < it->second;
}

}  // namespace slotgraph::emulation

#include "core/device/cuda/placed_memory.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/fatal.h"

namespace slotgraph::device::cuda {
namespace {

using emulation::AddressPolicy;
using emulation::AddressSpace;

// The driver is not linked: a machine without it gets a clear error from initialise().
template <typename Function>
Function* driver(const char* name, Function*) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  void* const symbol = library ? dlsym(library, name) : nullptr;
  if (!symbol) fatal(fmt::format("the CUDA driver has no {}", name));
  return reinterpret_cast<Function*>(symbol);
}
#define SLOTGRAPH_DRIVER(name)                            \
  ([]() -> decltype(::name)* {                            \
    static auto* const function = driver(#name, &::name); \
    return function;                                      \
  }())

// Other processes on the device want theirs.
constexpr std::size_t kMostKept = std::size_t{2} << 30;

CUmemLocation location(int device) { return {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}; }

}  // namespace

PlacedMemory& PlacedMemory::instance() {
  static PlacedMemory& instance = *new PlacedMemory();
  return instance;
}

void PlacedMemory::place(const Simulation& simulation) {
  using Addresses = Simulation::Addresses;
  const std::lock_guard lock(mutex_);
  policy_ = simulation.addresses == Addresses::kAscending    ? AddressPolicy::kAscending
            : simulation.addresses == Addresses::kDescending ? AddressPolicy::kDescendingChunks
                                                             : AddressPolicy::kSeeded;
  random_ = emulation::Random(simulation.order_seed);
  capacity_ = simulation.memory_bytes == 0 ? AddressSpace::kRange : simulation.memory_bytes;
  places_ = simulation.addresses != Addresses::kDriver;
}

emulation::AddressSpace* PlacedMemory::space(int device) {
  const auto known = spaces_.find(device);
  if (known != spaces_.end()) return &known->second;
  const std::uintptr_t base = AddressSpace::base(device);
  CUdeviceptr reserved = 0;
  const CUresult result = SLOTGRAPH_DRIVER(cuMemAddressReserve)(&reserved, AddressSpace::kRange,
                                                                AddressSpace::kGranule, base, 0);
  if (result != CUDA_SUCCESS) return nullptr;
  if (reserved != base)
    fatal(fmt::format("the driver reserved addresses at {:#x}, not at {:#x}", reserved, base));
  return &spaces_.emplace(device, AddressSpace(base, AddressSpace::kRange)).first->second;
}

std::optional<CUmemGenericAllocationHandle> PlacedMemory::make(int device, std::size_t bytes) {
  auto& kept = kept_[{device, bytes}];
  if (!kept.empty()) {
    const CUmemGenericAllocationHandle memory = kept.back();
    kept.pop_back();
    kept_bytes_[device] -= bytes;
    return memory;
  }
  const CUmemAllocationProp properties{.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE,
                                       .location = location(device),
                                       .win32HandleMetaData = nullptr,
                                       .allocFlags = {}};
  CUmemGenericAllocationHandle memory = 0;
  for (int i = 0; i < 2; ++i) {
    if (SLOTGRAPH_DRIVER(cuMemCreate)(&memory, bytes, &properties, 0) == CUDA_SUCCESS)
      return memory;
    drop_kept();
  }
  return std::nullopt;
}

void PlacedMemory::drop_kept() {
  for (auto& [key, kept] : kept_) {
    for (const CUmemGenericAllocationHandle memory : kept)
      (void)SLOTGRAPH_DRIVER(cuMemRelease)(memory);
    kept_bytes_[key.first] -= key.second * kept.size();
    kept.clear();
  }
}

cudaError_t PlacedMemory::allocate(int device, std::size_t bytes, void** pointer) {
  const std::lock_guard lock(mutex_);
  if (bytes > capacity_) return cudaErrorMemoryAllocation;
  const std::size_t size = AddressSpace::rounded(bytes);
  if (used_[device] + size > capacity_) return cudaErrorMemoryAllocation;
  AddressSpace* const addresses = space(device);
  if (!addresses) return cudaErrorMemoryAllocation;
  const auto address = addresses->take(size, policy_, random_);
  if (!address) return cudaErrorMemoryAllocation;
  const auto memory = make(device, size);
  const CUmemAccessDesc access{.location = location(device),
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const bool mapped =
      memory && SLOTGRAPH_DRIVER(cuMemMap)(*address, size, 0, *memory, 0) == CUDA_SUCCESS;
  if (mapped && SLOTGRAPH_DRIVER(cuMemSetAccess)(*address, size, &access, 1) == CUDA_SUCCESS) {
    segments_[*address] = {device, size, *memory};
    used_[device] += size;
    *pointer = reinterpret_cast<void*>(*address);
    return cudaSuccess;
  }
  if (mapped) (void)SLOTGRAPH_DRIVER(cuMemUnmap)(*address, size);
  if (memory) (void)SLOTGRAPH_DRIVER(cuMemRelease)(*memory);
  addresses->give_back(*address, size);
  return cudaErrorMemoryAllocation;
}

std::optional<cudaError_t> PlacedMemory::free(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto it = segments_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (it == segments_.end()) return std::nullopt;
  const auto [device, size, memory] = it->second;
  if (SLOTGRAPH_DRIVER(cuMemUnmap)(it->first, size) != CUDA_SUCCESS) return cudaErrorUnknown;
  if (kept_bytes_[device] + size <= kMostKept) {
    kept_[{device, size}].push_back(memory);
    kept_bytes_[device] += size;
  } else if (SLOTGRAPH_DRIVER(cuMemRelease)(memory) != CUDA_SUCCESS) {
    return cudaErrorUnknown;
  }
  spaces_.at(device).give_back(it->first, size);
  used_[device] -= size;
  segments_.erase(it);
  return cudaSuccess;
}

bool PlacedMemory::owns(const void* pointer) {
  const std::lock_guard lock(mutex_);
  return segments_.contains(reinterpret_cast<std::uintptr_t>(pointer));
}

void PlacedMemory::note(int device, const void* pointer, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t size = AddressSpace::rounded(bytes);
  others_[reinterpret_cast<std::uintptr_t>(pointer)] = {device, size};
  used_[device] += size;
}

void PlacedMemory::forget(const void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto it = others_.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (it == others_.end()) return;
  used_[it->second.first] -= it->second.second;
  others_.erase(it);
}

PlacedMemory::Use PlacedMemory::use() {
  CUdevice device = 0;
  if (SLOTGRAPH_DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return {};
  const std::lock_guard lock(mutex_);
  return {used_[device], used_[device] + kept_bytes_[device], capacity_};
}

}  // namespace slotgraph::device::cuda

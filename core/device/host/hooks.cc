// What libtorch asks about CUDA outside the dispatcher, and pinned memory.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cstring>

#include "core/device/device.h"
#include "core/device/host/generator.h"

namespace slotgraph::device::host {
namespace {

// Pinned memory straight from the runtime; cudaFreeHost waits for the device, so copies in flight
// are safe.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* pointer = nullptr;
    if (bytes > 0) C10_CUDA_CHECK(cudaHostAlloc(&pointer, bytes, cudaHostAllocDefault));
    return {pointer, pointer, &release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

 private:
  static void release(void* pointer) {
    if (cudaFreeHost(pointer) != cudaSuccess) (void)cudaGetLastError();
  }
};

struct Hooks final : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override { initialise(); }
  const at::Generator& getDefaultGenerator(at::DeviceIndex device) const override {
    return default_generator(device);
  }
  at::Generator getNewGenerator(at::DeviceIndex device) const override {
    return at::make_generator<HostGenerator>(device < 0 ? c10::cuda::current_device() : device);
  }
  at::Device getDeviceFromPtr(void* pointer) const override {
    cudaPointerAttributes attributes{};
    C10_CUDA_CHECK(cudaPointerGetAttributes(&attributes, pointer));
    TORCH_CHECK(attributes.type == cudaMemoryTypeDevice, "the pointer is no device memory");
    return {at::kCUDA, static_cast<at::DeviceIndex>(attributes.device)};
  }
  bool isPinnedPtr(const void* pointer) const override {
    cudaPointerAttributes attributes{};
    C10_CUDA_CHECK(cudaPointerGetAttributes(&attributes, pointer));
    return attributes.type == cudaMemoryTypeHost;
  }
  at::Allocator* getPinnedMemoryAllocator() const override {
    static PinnedAllocator& allocator = *new PinnedAllocator();
    return &allocator;
  }
  at::Allocator* getCUDADeviceAllocator() const override {
    return c10::cuda::CUDACachingAllocator::get();
  }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  bool hasPrimaryContext(at::DeviceIndex) const override { return true; }
  at::DeviceIndex current_device() const override { return c10::cuda::current_device(); }
  at::DeviceIndex getCurrentDevice() const override { return c10::cuda::current_device(); }
  at::DeviceIndex deviceCount() const override { return c10::cuda::device_count(); }
  int getNumGPUs() const override { return c10::cuda::device_count(); }
  void setCurrentDevice(at::DeviceIndex device) const override { c10::cuda::set_device(device); }
  void deviceSynchronize(at::DeviceIndex) const override { c10::cuda::device_synchronize(); }
};

}  // namespace
}  // namespace slotgraph::device::host

namespace at {
using slotgraph::device::host::Hooks;
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", Hooks)
}  // namespace at

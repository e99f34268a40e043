#include "core/device/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <mutex>

#include "core/device/host/generator.h"
#include "core/device/host/poison.h"
#include "core/emulation/control.h"

namespace c10::cuda::_internal {
// Exported by libc10_cuda and declared in no header: libtorch_cuda, which is not loaded, normally
// calls it.
C10_CUDA_API void setHasPrimaryContext(bool (*has_primary_context)(DeviceIndex));
}  // namespace c10::cuda::_internal

namespace slotgraph::device {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{8} << 30;

}  // namespace

void initialise() {
  static std::once_flag once;
  std::call_once(once, [] {
    at::set_num_threads(1);
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    c10::cuda::CUDACachingAllocator::init(c10::cuda::device_count());
    host::attach_block_poison();
  });
}

Capabilities capabilities() {
  return {.name = "host",
          .instruction_set = fmt::format("{} torch {}", at::get_cpu_capability(), TORCH_VERSION),
          .simulated = true,
          .library_random_values = false};
}

void configure(const Simulation& simulation) {
  slotgraph_emulation_set_seed(simulation.order_seed);
  slotgraph_emulation_set_poison(simulation.poison);
  host::set_block_poison(simulation.poison);
  slotgraph_emulation_set_capacity(simulation.memory_bytes == 0 ? kMemoryBytes
                                                                : simulation.memory_bytes);
  switch (simulation.addresses) {
    case Simulation::Addresses::kAscending:
    case Simulation::Addresses::kDriver:
      slotgraph_emulation_set_address_policy(SLOTGRAPH_ADDRESS_ASCENDING);
      break;
    case Simulation::Addresses::kDescending:
      slotgraph_emulation_set_address_policy(SLOTGRAPH_ADDRESS_DESCENDING);
      break;
    case Simulation::Addresses::kSeeded:
      slotgraph_emulation_set_address_policy(SLOTGRAPH_ADDRESS_SEEDED);
      break;
  }
}

Resources resources() {
  const SlotgraphEmulationUsage usage = slotgraph_emulation_usage();
  return {.segments = usage.segments,
          .graphs = usage.graphs,
          .events = usage.events,
          .captures = usage.captures,
          .queued = usage.queued};
}

int last_error() { return static_cast<int>(cudaPeekAtLastError()); }

std::vector<std::string> call_log() {
  std::vector<std::string> lines;
  slotgraph_emulation_read_log(
      [](const char* text, void* context) {
        static_cast<std::vector<std::string>*>(context)->emplace_back(text);
      },
      &lines);
  return lines;
}

void observe_calls(int (*observer)(const char* call, void* context), void* context) {
  slotgraph_emulation_observe(observer, context);
}

void lose() { slotgraph_emulation_raise(cudaErrorIllegalAddress); }

void open_pool(c10::MempoolId_t) {}
void close_pool(c10::MempoolId_t) {}

void release_workspaces() {}

void synchronise() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }

MemoryInfo memory_info() {
  MemoryInfo info;
  C10_CUDA_CHECK(cudaMemGetInfo(&info.free_bytes, &info.total_bytes));
  return info;
}

at::Generator generator() { return host::default_generator(-1); }

}  // namespace slotgraph::device

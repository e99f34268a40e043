#include "core/device/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "core/device/block_contents.h"
#include "core/device/cuda/placed_memory.h"
#include "core/device/cuda/runtime_calls.h"
#include "core/error.h"

namespace at::cuda {
// Exported by libtorch_cuda; its header, CUDAContextLight.h, needs those of cuSPARSE and cuBLAS.
TORCH_CUDA_CPP_API void clearCublasWorkspaces();  // NOLINT: libtorch's name
}  // namespace at::cuda

namespace slotgraph::device {
namespace {

using cuda::PlacedMemory;
using cuda::RuntimeCalls;

void require_device() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (error == cudaSuccess && count > 0) return;
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  throw Error(Error::kNoDevice,
              {.rule = "D02",
               .where = "CUDA device",
               .found = fmt::format("{} devices ({}), driver for CUDA {}.{}", count,
                                    cudaGetErrorString(error), driver / 1000, driver % 1000 / 10),
               .expected = fmt::format("a device, with a driver for CUDA {}.{} or newer",
                                       runtime / 1000, runtime % 1000 / 10),
               .advice = "run on a machine with a GPU (`nvidia-smi` shows it), or build without "
                         "--config=cuda, which needs none"});
}

}  // namespace

// The same case has to give the same bits: kernels that add in any order are not used where
// libtorch has others (it warns where it has none).
void initialise() {
  static std::once_flag once;
  std::call_once(once, [] {
    require_device();
    PlacedMemory::instance().place({});
    (void)setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
    at::set_num_threads(1);
    at::globalContext().lazyInitDevice(at::kCUDA);
    at::globalContext().setDeterministicAlgorithms(true, true);
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    at::globalContext().setBenchmarkCuDNN(false);
    c10::cuda::CUDACachingAllocator::init(c10::cuda::device_count());
  });
}

Capabilities capabilities() {
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, c10::cuda::current_device()));
  return {.name = "cuda",
          .instruction_set = fmt::format("{} sm_{}{} torch {}", properties.name, properties.major,
                                         properties.minor, TORCH_VERSION),
          .simulated = false,
          .library_random_values = true,
          .graph_generator_bytes = std::size_t{2} * 512};
}

void configure(const Simulation& simulation) { PlacedMemory::instance().place(simulation); }

void synchronise() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }

// Begins and ends a scope, which leaves one use.
void open_pool(c10::MempoolId_t pool) {
  at::HostAllocator* const pinned = at::getHostAllocator(at::kCUDA);
  pinned->begin_allocate_to_pool(pool, [](c10::Stream) { return false; });
  pinned->end_allocate_to_pool(pool);
}

void close_pool(c10::MempoolId_t pool) { at::getHostAllocator(at::kCUDA)->release_pool(pool); }

void release_workspaces() {
  if (RuntimeCalls::instance().graphs == 0) at::cuda::clearCublasWorkspaces();
}

MemoryInfo memory_info() {
  std::size_t free = 0;
  std::size_t total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  const PlacedMemory::Use use = PlacedMemory::instance().use();
  MemoryInfo info;
  info.total_bytes = std::min(total, use.capacity);
  info.free_bytes = info.total_bytes - std::min(info.total_bytes, use.segments);
  info.external_bytes = total - free - use.physical;
  return info;
}

Resources resources() {
  const RuntimeCalls& calls = RuntimeCalls::instance();
  return {.segments = calls.segments,
          .graphs = calls.graphs,
          .events = calls.events,
          .captures = calls.captures,
          .queued = 0};
}

int last_error() { return static_cast<int>(cudaPeekAtLastError()); }

std::vector<std::string> call_log() { return RuntimeCalls::instance().log(); }

void observe_calls(int (*observer)(const char* call, void* context), void* context) {
  RuntimeCalls::instance().observe(observer, context);
}

void lose() { RuntimeCalls::instance().lose(cudaErrorIllegalAddress); }

at::Generator generator() { return at::cuda::detail::getDefaultCUDAGenerator(-1); }

// A GPU never touches a block that is freed or handed out.
BlockContentsKept::BlockContentsKept() : before_(false) {}
BlockContentsKept::~BlockContentsKept() { (void)before_; }

}  // namespace slotgraph::device

#include "core/device/host/test_support.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>

#include <cstring>

namespace slotgraph::device {

at::Tensor values(at::IntArrayRef sizes, std::uint64_t seed) {
  at::Tensor result = at::empty(sizes, at::kFloat);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    result.data_ptr<float>()[i] =
        static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 0x1p-31f;
  }
  return result;
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.to(at::kCPU).contiguous();
  const at::Tensor y = b.to(at::kCPU).contiguous();
  return x.sizes() == y.sizes() && x.dtype() == y.dtype() &&
         (x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0);
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

ScopedSimulation::ScopedSimulation(const Simulation& simulation) {
  synchronise();
  configure(simulation);
}

ScopedSimulation::~ScopedSimulation() {
  synchronise();
  configure({});
}

ScopedPool::ScopedPool() {
  static c10::CaptureId_t last = 1000;
  id_ = {0, ++last};
  c10::cuda::CUDACachingAllocator::createOrIncrefPool(c10::cuda::current_device(), id_);
}

ScopedPool::~ScopedPool() {
  c10::cuda::CUDACachingAllocator::releasePool(c10::cuda::current_device(), id_);
}

std::unique_ptr<Graph> capture(c10::MempoolId_t pool, const std::function<void()>& work) {
  auto graph = make_graph();
  graph->begin_capture(pool);
  try {
    work();
  } catch (...) {
    graph->abandon();
    throw;
  }
  graph->end_capture();
  return graph;
}

}  // namespace slotgraph::device

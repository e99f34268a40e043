// What a driver takes for graphs, which no pool shows.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include <array>

#include "core/device/device.h"
#include "tools/bench/sections.h"

namespace slotgraph::bench {
namespace {

double external_mib() {
  device::synchronise();
  return static_cast<double>(device::memory_info().external_bytes) / (1 << 20);
}

// Graphs of `kNodes` fills each, one step of all after the other.
void measure_calls(Report& report) {
  constexpr int kGraphs = 512, kNodes = 16;
  const std::string work = fmt::format("{} graphs of {} nodes", kGraphs, kNodes);
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  void* memory = nullptr;
  C10_CUDA_CHECK(cudaMalloc(&memory, 4096));
  std::array<cudaGraph_t, kGraphs> graphs{};
  std::array<cudaGraphExec_t, kGraphs> executables{};
  double before = external_mib();
  const auto note = [&](const char* call) {
    const double now = external_mib();
    report.add("memory outside the allocator", work, "", call, "MiB", now - before);
    before = now;
  };
  for (cudaGraph_t& graph : graphs) {
    C10_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < kNodes; ++i) C10_CUDA_CHECK(cudaMemsetAsync(memory, i, 4096, stream));
    C10_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  }
  note("capture");
  for (int i = 0; i < kGraphs; ++i)
    C10_CUDA_CHECK(cudaGraphInstantiate(&executables[i], graphs[i], 0));
  note("instantiate");
  for (const cudaGraphExec_t executable : executables)
    C10_CUDA_CHECK(cudaGraphUpload(executable, stream));
  note("upload");
  for (const cudaGraphExec_t executable : executables)
    C10_CUDA_CHECK(cudaGraphLaunch(executable, stream));
  note("first replay");
  for (int i = 0; i < kGraphs; ++i) {
    C10_CUDA_CHECK(cudaGraphExecDestroy(executables[i]));
    C10_CUDA_CHECK(cudaGraphDestroy(graphs[i]));
  }
  note("destroy");
  C10_CUDA_CHECK(cudaFree(memory));
}

}  // namespace

void measure_banks(const Work& work, Report& report) {
  std::vector<std::unique_ptr<Station>> banks;
  for (int bank = 1; bank <= 4; ++bank) {
    banks.push_back(std::make_unique<Station>(work, Mode::kPlacement, Station::Gradients::kLent));
    const double before = external_mib();
    banks.back()->capture();
    const double captured = external_mib();
    for (int variant = 0; variant < work.variants(); ++variant) banks.back()->step(variant);
    report.add(
        "memory outside the allocator", work.name(), "placement",
        fmt::format("bank {} of {} graphs: capture", bank, 2 * work.frames() * work.variants()),
        "MiB", captured - before);
    report.add("memory outside the allocator", work.name(), "placement",
               fmt::format("bank {}: first replays", bank), "MiB", external_mib() - captured);
  }
  measure_calls(report);
}

}  // namespace slotgraph::bench

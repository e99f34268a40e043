// The time of one eager training step of a small network on the host device, and of the same step
// on the CPU: the price of emulation. Their ratio is to stay below 2.5. Processor time counts all
// threads, so that it is comparable on a busy machine.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones_like.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/device/host/test_support.h"

namespace slotgraph::device {
namespace {

constexpr std::int64_t kTokens = 128;
constexpr std::int64_t kHidden = 64;

using Tensors = std::vector<at::Tensor>;

struct Network {
  explicit Network(at::Device device)
      : input(values({kTokens, kHidden}, 1).to(device)),
        parameters{values({4 * kHidden, kHidden}, 2),
                   values({4 * kHidden}, 3),
                   values({kHidden, 4 * kHidden}, 4),
                   values({kHidden}, 5),
                   values({kHidden}, 6),
                   values({kHidden}, 7)} {
    for (at::Tensor& parameter : parameters) parameter = parameter.to(device).requires_grad_(true);
    ones = at::ones_like(input);
  }
  Tensors step() const {
    const Tensors& p = parameters;
    const at::Tensor hidden = at::gelu(at::linear(input, p[0], p[1]));
    const at::Tensor output =
        at::layer_norm(input + at::linear(hidden, p[2], p[3]), {kHidden}, p[4], p[5]);
    return torch::autograd::grad({output}, parameters, {ones});
  }
  at::Tensor input, ones;
  Tensors parameters;
};

void on_cpu(benchmark::State& state) {
  initialise();
  at::set_num_threads(1);
  const Network network(at::kCPU);
  for (auto unused : state) benchmark::DoNotOptimize(network.step());
}

void on_host_device(benchmark::State& state) {
  initialise();
  at::set_num_threads(1);
  configure({});
  const Network network(at::kCUDA);
  for (auto unused : state) {
    benchmark::DoNotOptimize(network.step());
    synchronise();
  }
}

BENCHMARK(on_cpu)->Unit(benchmark::kMicrosecond)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK(on_host_device)->Unit(benchmark::kMicrosecond)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace slotgraph::device

BENCHMARK_MAIN();

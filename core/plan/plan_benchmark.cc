// Speed of the pure rooms. One thread; run it alone on the machine:
//   bazel run -c opt //core/plan:plan_benchmark
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/order/dynamic_cp.h"
#include "core/order/microbatch_counts.h"
#include "core/plan/planner.h"
#include "core/random.h"

namespace slotgraph {
namespace {

// Every small shape: P <= 4, V <= 2, N <= 4, up to 2 layers a chunk, M <= 8.
std::vector<PlanRequest> small_requests() {
  std::vector<PlanRequest> requests;
  for (int p = 1; p <= 4; ++p)
    for (int rank = 0; rank < p; ++rank)
      for (int v = 0; v <= (p == 1 ? 0 : 2); ++v)
        for (int n = v == 0 ? 0 : p; n <= (v == 0 ? 0 : 4); ++n)
          for (int limit = 1; limit <= 8; ++limit) {
            if (v > 0 && limit % n != 0) continue;
            const PipelineShape shape{p, rank, v, n};
            const int layouts = v == 2 ? 9 : 3;
            for (int layout = 0; layout < layouts; ++layout) {
              std::vector<int> layers{layout % 3};
              if (v == 2) layers.push_back(layout / 3);
              requests.push_back({"", shape, layers, {2, 1}, aligned_counts(shape, limit)});
            }
          }
  return requests;
}

// A case: the order of the longest step, the plan, and its validation.
void small_plans(benchmark::State& state) {
  const std::vector<PlanRequest> requests = small_requests();
  std::size_t next = 0;
  for (auto _ : state) {
    const PlanRequest& request = requests[next++ % requests.size()];
    benchmark::DoNotOptimize(training_order(request.shape, request.counts.back()));
    const Plan plan = make_plan(request);
    check(plan);
    benchmark::DoNotOptimize(plan.slots.size());
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["shapes"] = static_cast<double>(requests.size());
}
BENCHMARK(small_plans);

void plan_model(benchmark::State& state, const PipelineShape& shape, std::vector<int> layers,
                std::vector<int> sizes) {
  const PlanRequest request{"", shape, std::move(layers), std::move(sizes),
                            aligned_counts(shape, static_cast<int>(state.range(0)))};
  for (auto _ : state) benchmark::DoNotOptimize(make_plan(request));
}
BENCHMARK_CAPTURE(plan_model, qwen3_235b_pp4_vpp12, PipelineShape{4, 0, 12, 4},
                  std::vector<int>{1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, std::vector<int>{8, 4})
    ->Arg(32)
    ->Arg(256)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan_model, qwen3_30b_pp2_vpp4, PipelineShape{2, 0, 4, 2},
                  std::vector<int>{6, 6, 6, 6}, std::vector<int>{2, 1})
    ->Arg(16)
    ->Arg(256)
    ->Unit(benchmark::kMicrosecond);

// 1,000 log-normal lengths up to `longest` tokens on 8 ranks of 8,192.
void schedule(benchmark::State& state) {
  std::uint64_t seed = 1;
  const auto uniform = [&] { return static_cast<double>(split_mix64(seed) >> 11) * 0x1p-53; };
  std::vector<std::int64_t> lengths;
  const double longest = static_cast<double>(state.range(0));
  while (lengths.size() < 1000) {
    const double normal = std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.2831853 * uniform());
    const double length = std::exp(std::log(longest / 8) + 1.1 * normal);
    lengths.push_back(static_cast<std::int64_t>(std::clamp(length, 128.0, longest)));
  }
  const CpLimits limits{8, 8192, 1, 4, 0};
  std::size_t microbatches = 0;
  for (auto _ : state) microbatches = greedy_schedule(limits, lengths).size();
  state.SetItemsProcessed(state.iterations() * 1000);
  state.counters["microbatches"] = static_cast<double>(microbatches);
}
BENCHMARK(schedule)->Arg(8192)->Arg(32768)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace slotgraph

BENCHMARK_MAIN();

// Figures of the runtime on this device: what sharing costs and saves against PyTorch's
// arrangement. One run, interleaved pairs, medians; ratios, since machines differ.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>

#include "core/device/device.h"
#include "core/exit_code.h"
#include "core/graph/callables.h"
#include "core/graph/calling_thread.h"
#include "core/models/blocks.h"
#include "core/models/values.h"
#include "core/plan/planner.h"

namespace slotgraph {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using Clock = std::chrono::steady_clock;

constexpr int kPairs = 31;

double milliseconds(Clock::time_point from) {
  return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Work {
  std::string block = "mlp";
  std::int64_t hidden = 256;
  int tokens = 512;
  int layers = 2;
  int ring = 4;
  std::vector<int> cp_sizes = {8, 4, 2, 1};
};

// The first of `ring` stages: all slots are live together.
Plan plan_of(const Work& work) {
  PlanRequest request;
  request.name = "figures";
  request.shape.pipeline_size = work.ring;
  request.layers_per_chunk = {work.layers};
  request.cp_sizes = work.cp_sizes;
  request.counts = {work.ring};
  return make_plan(request);
}

// One set of callables over a model, and its steps.
class Bench {
 public:
  Bench(const Work& work, Mode mode, bool lend) : work_(work), plan_(plan_of(work)) {
    for (int l = 0; l < work.layers; ++l)
      layers_.push_back(find_block(work.block).make({work.hidden, at::kFloat}, 1 + l));
    for (const int cp : work.cp_sizes) {
      modules_.insert(modules_.end(), layers_.begin(), layers_.end());
      inputs_.push_back(integer_values({work.tokens / cp, work.hidden}, at::kFloat, 3)
                            .to(at::kCUDA)
                            .requires_grad_(true));
      samples_.insert(samples_.end(), static_cast<std::size_t>(work.ring * work.layers),
                      Inputs{{inputs_.back()}, {}});
    }
    options_.mode = mode;
    options_.warm_up_iterations = 2;
    options_.after_warm_up = [this](int) {
      device::synchronise();
      warmed_ = Clock::now();
    };
    if (lend) options_.borrow_parameter_gradients = [](int, const Tensors&) {};
  }

  // Milliseconds without warm-up.
  double capture() {
    set_ = graph_callables(modules_, samples_, plan_.base_order, plan_, options_);
    return milliseconds(warmed_);
  }

  // One microbatch in every slot, forward then backward, in one variant.
  void step(int variant) {
    std::vector<std::pair<at::Tensor, at::Tensor>> flights;  // input, output
    for (const OrderEvent& event : events(plan_.base_order)) {
      for (int i = 0; i < work_.layers; ++i) {
        const int layer = event.forward ? i : work_.layers - 1 - i;
        const auto index = static_cast<std::size_t>(event.microbatch * work_.layers + layer);
        if (flights.size() <= index) flights.resize(index + 1);
        auto& [input, output] = flights[index];
        if (event.forward) {
          input = (layer == 0 ? inputs_[variant] : flights[index - 1].second)
                      .detach()
                      .requires_grad_(true);
          output =
              set_->at(plan_.branch(variant, 0, event.microbatch, layer)).forward({{input}, {}})[0];
          continue;
        }
        incoming_ = layer == work_.layers - 1 ? inputs_[variant].detach() : incoming_;
        Tensors wanted{input};
        const Tensors parameters = trainable_parameters(layers_[layer]);
        wanted.insert(wanted.end(), parameters.begin(), parameters.end());
        incoming_ =
            torch::autograd::grad({output}, wanted, {incoming_}, std::nullopt, false, true)[0];
        output = at::Tensor();
      }
    }
    set_->end_step();
  }

  double timed_step(int variant) {
    device::synchronise();
    const auto begin = Clock::now();
    step(variant);
    device::synchronise();
    return milliseconds(begin);
  }

  const CallableSet& set() const { return *set_; }
  const Plan& plan() const { return plan_; }
  void drop() { set_.reset(); }

 private:
  Work work_;
  Plan plan_;
  std::vector<GraphModule> layers_, modules_;
  Tensors inputs_;
  std::vector<Inputs> samples_;
  Options options_;
  Clock::time_point warmed_;
  std::unique_ptr<CallableSet> set_;
  at::Tensor incoming_;
};

const char* name_of(Mode mode) {
  return mode == Mode::kPlacement    ? "placement"
         : mode == Mode::kArena      ? "arena"
         : mode == Mode::kCheckpoint ? "checkpoint"
         : mode == Mode::kPerVariant ? "PyTorch's"
                                     : "native";
}

constexpr Mode kShared[] = {Mode::kPlacement, Mode::kArena, Mode::kCheckpoint};

// Medians of interleaved pairs with `native`, in changing order.
double paired(const std::function<double()>& mine, const std::function<double()>& native) {
  std::vector<double> ratios;
  for (int i = 0; i < kPairs; ++i) {
    const bool first = i % 2 == 0;
    const double a = first ? mine() : 0;
    const double b = native();
    const double c = first ? a : mine();
    ratios.push_back(c / b);
  }
  return median(ratios);
}

void replay_figures(const std::string& block) {
  const Work work{.block = block};
  Bench native(work, Mode::kNative, /*lend=*/true);
  native.capture();
  fmt::print("\nreplay, {}, hidden {}, {} tokens, parameter gradients lent on both sides\n", block,
             work.hidden, work.tokens);
  for (const Mode mode : kShared) {
    Bench bench(work, mode, true);
    bench.capture();
    const int largest = bench.plan().variants() - 1;
    bench.timed_step(largest);
    const double ratio = paired([&] { return bench.timed_step(largest); },
                                [&] { return native.timed_step(largest); });
    const MemoryUse use = bench.set().memory();
    fmt::print("  {:10} {:.3f} of native; copies of all branches {:.2f} MiB\n", name_of(mode),
               ratio, static_cast<double>(use.copied_bytes) / (1 << 20));
  }
  Bench lent(work, Mode::kPlacement, true), cloned(work, Mode::kPlacement, false);
  lent.capture();
  cloned.capture();
  const int largest = lent.plan().variants() - 1;
  const auto allocated = [&](Bench& bench) {
    const auto count = [] { return caching::getDeviceStats(0).allocation[0].allocated; };
    const auto before = count();
    bench.step(largest);
    return count() - before;
  };
  fmt::print(
      "  clones: {:.3f} of lent; allocations of a step of {} branches: lent {}, cloned {}\n",
      paired([&] { return cloned.timed_step(largest); }, [&] { return lent.timed_step(largest); }),
      work.ring * work.layers, allocated(lent), allocated(cloned));
}

void capture_figures(const std::string& block) {
  const Work work{.block = block};
  fmt::print("\ncapture without warm-up, {}, {} branches\n", block,
             work.ring * work.layers * static_cast<int>(work.cp_sizes.size()));
  Bench native(work, Mode::kNative, true);
  native.capture();
  for (const Mode mode : kShared) {
    Bench bench(work, mode, true);
    std::vector<double> times;
    const double ratio = paired(
        [&] {
          bench.drop();
          times.push_back(bench.capture());
          return times.back();
        },
        [&] {
          native.drop();
          return native.capture();
        });
    fmt::print("  {:10} {:.3f} of native, {:.2f} ms\n", name_of(mode), ratio, median(times));
  }
}

void memory_figures(const std::string& block, std::int64_t hidden) {
  Work work{.block = block, .hidden = hidden};
  const auto use = [&](Mode mode, const std::vector<int>& cp_sizes) {
    work.cp_sizes = cp_sizes;
    Bench bench(work, mode, true);
    bench.capture();
    return bench.set().memory();
  };
  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const std::vector<int> all{8, 4, 2, 1};
  const MemoryUse alone = use(Mode::kPerVariant, {1});
  fmt::print("\nmemory, {}, hidden {}, {} tokens, MiB: reserved (live, arenas), of largest alone\n",
             block, hidden, work.tokens);
  fmt::print("  {:22} {:8.1f} ({:.1f})\n", "largest variant alone", mib(alone.reserved_bytes),
             mib(alone.live_bytes));
  for (const Mode mode :
       {Mode::kPerVariant, Mode::kNative, Mode::kPlacement, Mode::kArena, Mode::kCheckpoint}) {
    const MemoryUse found = use(mode, all);
    fmt::print("  {:22} {:8.1f} ({:.1f}, {:.1f}) {:.3f}\n",
               std::string("four variants, ") + name_of(mode), mib(found.reserved_bytes),
               mib(found.live_bytes), mib(found.arena_bytes),
               mib(found.reserved_bytes) / mib(alone.reserved_bytes));
  }
}

// 192 callables, 50 steps in each variant, and everything comes back.
bool many_callables() {
  const auto free_bytes = [] {
    device::synchronise();
    caching::emptyCache();
    return device::memory_info().free_bytes;
  };
  bool clean = true;
  for (const Mode mode : kShared) {
    const std::size_t before = free_bytes();
    std::size_t branches = 0;
    {
      Bench bench({.hidden = 32, .tokens = 64, .layers = 12, .ring = 8, .cp_sizes = {2, 1}}, mode,
                  false);
      bench.capture();
      branches = bench.plan().slots.size();
      for (int step = 0; step < 50; ++step) bench.step(step % 2);
    }
    const std::size_t after = free_bytes();
    clean = clean && after == before;
    fmt::print("  {:10} {} callables, 50 steps: {} bytes not returned\n", name_of(mode), branches,
               before - after);
  }
  return clean;
}

int run() {
  device::initialise();
  const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
  const CallingThreadGuard calling_thread;
  for (const char* block : {"mlp", "attention"}) {
    replay_figures(block);
    capture_figures(block);
    memory_figures(block, 256);
  }
  memory_figures("mlp", 1024);
  fmt::print("\nteardown\n");
  return many_callables() ? kHolds : kViolated;
}

}  // namespace
}  // namespace slotgraph

int main() { return slotgraph::run(); }

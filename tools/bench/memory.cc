#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/device/device.h"
#include "core/memory/checkpoint.h"
#include "tools/bench/sections.h"

namespace slotgraph::bench {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

double mib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

MemoryUse use_of(Work work, Mode mode, const std::vector<int>& cp_sizes) {
  work.cp_sizes = cp_sizes;
  Station station(work, mode, Station::Gradients::kLent);
  station.capture();
  return station.set().memory();
}

// The transients of one capture: of one frame of the largest variant, without its arenas.
std::size_t transient_bytes(Work work) {
  work.cp_sizes = {1};
  work.layers = 1;
  work.ring = 1;
  const MemoryUse use = use_of(work, Mode::kPlacement, work.cp_sizes);
  return use.reserved_bytes - use.arena_bytes;
}

// That a step leaves alive besides the pools: clones of parameter gradients.
std::size_t clone_bytes(const Work& work) {
  Station station(work, Mode::kPlacement, Station::Gradients::kCloned);
  station.capture();
  Tensors gradients;
  station.step(work.variants() - 1, &gradients);
  std::size_t bytes = 0;
  for (const at::Tensor& gradient : gradients) bytes += gradient.nbytes();
  return bytes;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  const at::ScalarType integer = a.element_size() == 2 ? at::kShort : at::kInt;
  return at::equal(a.view(integer), b.view(integer));
}

}  // namespace

void measure_memory(const Work& work, Report& report) {
  const std::string name = work.name();
  const MemoryUse alone = use_of(work, Mode::kPerVariant, {1});
  const double lone = mib(alone.reserved_bytes);
  report.add("memory", name, to_string(Mode::kPerVariant), "largest variant alone", "MiB", lone);
  for (const Mode mode :
       {Mode::kPerVariant, Mode::kNative, Mode::kPlacement, Mode::kArena, Mode::kCheckpoint}) {
    const MemoryUse use = use_of(work, mode, work.cp_sizes);
    report.add("memory", name, to_string(mode), "pools", "MiB", mib(use.reserved_bytes));
    report.add("memory", name, to_string(mode), "pools to largest alone", "ratio",
               mib(use.reserved_bytes) / lone);
    if (mode != Mode::kPlacement) continue;
    const double bound = mib(use.arena_bytes + transient_bytes(work));
    report.add("memory", name, to_string(mode), "arenas", "MiB", mib(use.arena_bytes));
    report.add("memory", name, to_string(mode), "pools to lower bound", "ratio",
               mib(use.reserved_bytes) / bound);
    report.add("memory", name, to_string(mode), "pools and live clones", "MiB",
               mib(use.reserved_bytes + clone_bytes(work)));
  }
}

bool check_gradients(const Work& work, Report& report) {
  Station eager(work, Mode::kEager, Station::Gradients::kCloned);
  eager.capture();
  bool right = true;
  for (const Mode mode : {Mode::kPlacement, Mode::kArena, Mode::kCheckpoint}) {
    Station station(work, mode, Station::Gradients::kCloned);
    station.capture();
    int wrong = 0;
    int compared = 0;
    for (int variant = 0; variant < work.variants(); ++variant) {
      Tensors expected, found;
      eager.step(variant, &expected);
      station.step(variant, &found);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ++compared;
        wrong += !same_bits(expected[i], found[i]);
      }
    }
    right = right && wrong == 0;
    report.add("gradients", work.name(), to_string(mode), "parameter gradients compared", "count",
               compared);
    report.add("gradients", work.name(), to_string(mode), "wrong", "count", wrong);
  }
  return right;
}

void measure_restore(Report& report) {
  constexpr int kBlocks = 1000, kLater = 100;
  const PrivatePool pool;
  const auto allocate = [&](int count) {
    const AllocationScope scope(pool);
    Tensors blocks;
    for (int i = 0; i < count; ++i)
      blocks.push_back(at::empty({512 << (i % 8)}, at::TensorOptions(at::kCUDA).dtype(at::kByte)));
    return blocks;
  };
  const auto storages = [](const Tensors& a, const Tensors& b) {
    std::vector<c10::Storage> all;
    for (const Tensors* const blocks : {&a, &b}) {
      for (const at::Tensor& block : *blocks) all.push_back(block.storage());
    }
    return all;
  };
  Tensors first = allocate(kBlocks);
  settle(pool);
  const Checkpoint target = take_checkpoint(pool, storages(first, {}));
  std::vector<double> times;
  for (int i = 0; i < 2 * kRepeats; ++i) {
    Tensors later = allocate(kLater);
    settle(pool);
    const Checkpoint current = take_checkpoint(pool, storages(first, later));
    const auto begin = Clock::now();
    switch_pool(pool, current, target, "bench");
    times.push_back(milliseconds_since(begin));
  }
  report.add({"restore", fmt::format("{} blocks, {} later ones", kBlocks, kLater), "checkpoint",
              "set the pool back", "ms", sample_of(times)});
}

}  // namespace slotgraph::bench

#include "core/plan/packing/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/plan/conflicts.h"
#include "core/plan/packing/clique.h"
#include "core/plan/packing/weighted_colouring.h"
#include "core/random.h"

namespace slotgraph {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// What colouring a plan needs to know.
struct Problem {
  ConflictGraph conflicts;            // of frames
  std::vector<std::int64_t> weights;  // of frames
  Palette fewest;                     // arenas
  PackingScore bounds;
};

// Returns the palette that no colouring can go below: it has as many arenas of at least each size
// as frames of at least that size conflict with each other.
Palette fewest_arenas(const Plan& plan, const LayerBytes& bytes, const Liveness& liveness,
                      std::int64_t steps) {
  std::set<std::int64_t, std::greater<>> sizes;
  for (const auto& chunk : bytes) sizes.insert(chunk.begin(), chunk.end());
  steps /= std::max<std::int64_t>(1, static_cast<std::int64_t>(sizes.size()));
  Palette arenas;
  for (const std::int64_t size : sizes) {
    std::vector<std::int64_t> frames;  // of each place, at least as large
    for (const auto& chunk : bytes) {
      const auto count = std::count_if(chunk.begin(), chunk.end(),
                                       [size](std::int64_t each) { return each >= size; });
      frames.insert(frames.end(), plan.ring_length, count);
    }
    const std::int64_t clique =
        heaviest_clique(liveness.together, frames, liveness.peak_places, steps).weight;
    arenas.resize(std::max<std::size_t>(arenas.size(), clique), size);
  }
  return arenas;
}

// Without the order of capture for a plan that does not cover it.
Problem make_problem(const Plan& plan, const LayerBytes& bytes, const Effort& effort,
                     bool with_capture) {
  check_bytes(plan, bytes);
  std::vector<std::int64_t> place_bytes, weights;
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    for (int slot = 0; slot < plan.ring_length; ++slot) {
      place_bytes.push_back(0);
      for (const std::int64_t each : bytes[chunk]) place_bytes.back() += each;
      weights.insert(weights.end(), bytes[chunk].begin(), bytes[chunk].end());
    }
  }
  const Liveness liveness =
      walk(covering_orders(plan.shape, plan.covered_counts, plan.ring_length, with_capture),
           plan.chunks(), plan.ring_length, place_bytes);
  // All layers of a place conflict alike: a heaviest clique of places is one of frames.
  const Clique clique =
      heaviest_clique(liveness.together, place_bytes, liveness.peak_places, effort.clique_steps);
  PackingScore bounds;
  bounds.executables = static_cast<std::int64_t>(plan.slots.size());
  bounds.peak_bytes = liveness.peak;
  bounds.clique_bytes = clique.weight;
  bounds.clique_heaviest = clique.heaviest;
  Palette fewest = fewest_arenas(plan, bytes, liveness, effort.clique_steps);
  bounds.layered_bytes = std::max({std::accumulate(fewest.begin(), fewest.end(), std::int64_t{0}),
                                   clique.weight, liveness.peak});
  return {frame_conflicts(liveness.together, plan.layers_per_chunk, plan.ring_length),
          std::move(weights), std::move(fewest), bounds};
}

}  // namespace

void check_bytes(const Plan& plan, const LayerBytes& bytes) {
  const auto refuse = [](std::string where, std::string found, std::string expected) {
    throw Error(Error::kInput, {"PK1", std::move(where), std::move(found), std::move(expected),
                                "give one size for each layer of each chunk"});
  };
  if (bytes.size() != plan.layers_per_chunk.size()) {
    refuse("bytes", fmt::format("{} chunks", bytes.size()), fmt::to_string(plan.chunks()));
  }
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    const std::string where = fmt::format("bytes of chunk {}", chunk);
    if (static_cast<int>(bytes[chunk].size()) != plan.layers_per_chunk[chunk]) {
      refuse(where, fmt::format("{} layers", bytes[chunk].size()),
             fmt::to_string(plan.layers_per_chunk[chunk]));
    }
    for (const std::int64_t each : bytes[chunk]) {
      // Sums over kMostFrames frames stay far below 2^63.
      if (each < 0 || each > std::int64_t{1} << 45)
        refuse(where, fmt::to_string(each), "0 to 2^45 bytes");
    }
  }
}

const char* name_of(SizeSet set) {
  switch (set) {
    case SizeSet::kUnit:
      return "unit";
    case SizeSet::kUniform:
      return "uniform";
    case SizeSet::kSkewed:
      return "skewed";
    case SizeSet::kPerChunk:
      return "per-chunk";
  }
  return "";
}

LayerBytes seeded_bytes(SizeSet set, const std::vector<int>& layers_per_chunk, std::uint64_t seed) {
  const auto draw = [&](std::int64_t most) {
    return static_cast<std::int64_t>(split_mix64(seed) % static_cast<std::uint64_t>(most)) + 1;
  };
  LayerBytes bytes;
  for (const int layers : layers_per_chunk) {
    bytes.emplace_back();
    const std::int64_t of_chunk = draw(64) * kMiB;
    for (int layer = 0; layer < layers; ++layer) {
      std::int64_t size = 1;
      if (set == SizeSet::kUniform) size = draw(64) * kMiB;
      // A power of two from 1 to 256 MiB.
      if (set == SizeSet::kSkewed) size = (256 * kMiB) >> std::min<std::int64_t>(8, draw(64) % 9);
      if (set == SizeSet::kPerChunk) size = of_chunk;
      bytes.back().push_back(size);
    }
  }
  return bytes;
}

PackedPlan pack(Plan plan, const LayerBytes& bytes, const Effort& effort) {
  Problem problem = make_problem(plan, bytes, effort, true);
  PackedPlan result{std::move(plan), problem.bounds};
  const WeightedColouring colouring =
      colour(problem.conflicts, problem.weights, problem.fewest, effort.colouring_steps);
  result.score.arena_bytes = colouring.cost;
  result.score.optimal = colouring.optimal || colouring.cost <= result.score.layered_bytes;
  const std::size_t frames = problem.weights.size();
  for (std::size_t i = 0; i < result.plan.slots.size(); ++i)
    result.plan.slots[i].colour = colouring.colours[i % frames];
  return result;
}

PackingScore score(const Plan& plan, const LayerBytes& bytes, const Effort& effort) {
  const Problem problem = make_problem(plan, bytes, effort, covers_capture(plan));
  PackingScore result = problem.bounds;
  Colouring colours;
  for (std::size_t i = 0; i < problem.weights.size(); ++i) colours.push_back(plan.slots[i].colour);
  result.arena_bytes = cost_of(colours, problem.weights);
  result.optimal = result.arena_bytes <= result.layered_bytes;
  return result;
}

}  // namespace slotgraph

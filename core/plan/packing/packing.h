// Plans by bytes: what arenas cost with exact frame sizes, and how far that is from the best.
#ifndef CORE_PLAN_PACKING_PACKING_H_
#define CORE_PLAN_PACKING_PACKING_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace slotgraph {

// Bytes of a frame, the largest over the variants, of each layer of each chunk: all slots of a ring
// run the same module.
using LayerBytes = std::vector<std::vector<std::int64_t>>;

// Sizes for measurements, the same on every machine: `unit` has one byte a frame; `uniform` 1 to 64
// MiB; `skewed` a power of two from 1 to 256 MiB; `per-chunk` one size a chunk.
enum class SizeSet { kUnit, kUniform, kSkewed, kPerChunk };
inline constexpr SizeSet kSizeSets[] = {SizeSet::kUnit, SizeSet::kUniform, SizeSet::kSkewed,
                                        SizeSet::kPerChunk};
const char* name_of(SizeSet set);
LayerBytes seeded_bytes(SizeSet set, const std::vector<int>& layers_per_chunk, std::uint64_t seed);

// Search limits, in steps: never the clock.
struct Effort {
  std::int64_t clique_steps = 1'000'000;
  std::int64_t colouring_steps = 200'000;
};

// What an arrangement of arenas costs and how good it is.
struct PackingScore {
  std::int64_t arena_bytes = 0;
  std::int64_t executables = 0;   // graphs of each direction: branches
  std::int64_t peak_bytes = 0;    // live at once: below it nothing works, whatever slots do
  std::int64_t clique_bytes = 0;  // of the heaviest set of frames that all conflict
  bool clique_heaviest = false;   // no heavier one exists
  // Sum over the sizes t of (t - next smaller size) * largest clique of frames of at least t bytes:
  // so many arenas have at least t bytes. It bounds arenas that hold one frame at a time; peak and
  // clique also bound frames that lie anywhere.
  std::int64_t layered_bytes = 0;
  bool optimal = false;  // no colouring of these slots costs less
  std::int64_t lower_bound() const { return std::max({peak_bytes, clique_bytes, layered_bytes}); }
  // Share by which the arenas exceed a bound.
  double gap(std::int64_t bound) const {
    return bound == 0 ? 0 : static_cast<double>(arena_bytes - bound) / static_cast<double>(bound);
  }
};

struct PackedPlan {
  Plan plan;
  PackingScore score;
};

// Throws Error PK1 unless `bytes` has one number, 0 to 2^45, for each layer of each chunk.
void check_bytes(const Plan& plan, const LayerBytes& bytes);

// Gives the frames of a checked plan new colours that cost few bytes; all other fields stay. Throws
// Error as check_bytes.
PackedPlan pack(Plan plan, const LayerBytes& bytes, const Effort& effort);

// What the plan's own colours cost. A plan that does not cover its capture is judged without it.
PackingScore score(const Plan& plan, const LayerBytes& bytes, const Effort& effort);

}  // namespace slotgraph

#endif  // CORE_PLAN_PACKING_PACKING_H_

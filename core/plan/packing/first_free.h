// Slots chosen while a step runs: a microbatch takes the first slot of its chunk that is free,
// instead of its number modulo the ring.
//
// Frames then live in intervals, and arenas can be as few as frames live at once, whatever the
// ring; the price is that a chunk may have more slots, each with graphs of its own. The choice is
// local to a rank: it depends on the rank's order only.
#ifndef CORE_PLAN_PACKING_FIRST_FREE_H_
#define CORE_PLAN_PACKING_FIRST_FREE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/packing/packing.h"
#include "core/plan/plan.h"

namespace slotgraph {

struct FirstFreePlan {
  std::string name;
  PipelineShape shape;
  std::vector<int> layers_per_chunk;
  std::vector<int> cp_sizes;
  std::vector<int> covered_counts;
  std::vector<std::int64_t> arena_bytes;  // of each saved arena
  std::vector<int> slots_of_chunk;
  // In emission order: variant, chunk, slot, layer; the seven fields as in Plan.
  std::vector<Slot> slots;

  int variants() const { return static_cast<int>(cp_sizes.size()); }
  int chunks() const { return static_cast<int>(layers_per_chunk.size()); }
};

// The rule of the choice, for planners, checkers and runtimes: a slot is free if all its arenas
// are. The slot of the last backward event, whose gradient is read until the next one ends, must
// not be the next one's as well: it is free only while another microbatch of its chunk is live.
class FirstFreeChooser {
 public:
  explicit FirstFreeChooser(int chunks) : chunks_(chunks) {}
  // The next slot of the chunk, with an arena, from 0, for each layer.
  void add_slot(int chunk, std::vector<int> arenas);
  // The first free slot of the chunk, which then is live; -1 if none is free.
  int forward(int chunk);
  // The slot of the chunk's oldest live microbatch, which then is free. One must be live.
  int backward(int chunk);
  // A new step begins; nothing may be live.
  void start_step() { last_ = {-1, -1}; }

  const std::vector<int>& arenas(int chunk, int slot) const { return chunks_[chunk].slots[slot]; }
  bool is_used(int arena) const {
    return arena < static_cast<int>(used_.size()) && used_[arena] != 0;
  }

 private:
  struct Chunk {
    std::vector<std::vector<int>> slots;  // arenas of each
    std::vector<int> live;                // slots, oldest first
  };
  std::vector<Chunk> chunks_;
  std::vector<char> used_;            // arenas
  std::pair<int, int> last_{-1, -1};  // chunk and slot of the last backward
};

struct PackedFirstFree {
  FirstFreePlan plan;
  PackingScore score;  // clique_bytes equals peak_bytes: live sets are all that conflicts
};

// Plans slots and arenas for the shape, counts and variants of `plan`, whose own slots and ring do
// not matter. Throws Error as check_bytes.
PackedFirstFree pack_first_free(const Plan& plan, const LayerBytes& bytes);

// Replays the covered counts that dominate the others. Throws Error: PL00, OP1, OP2 as check_shape;
// FF1 numbers, arenas, sizes or fields that are not those of a plan in emission order, PK1 as
// check_bytes, FF2 no slot is free, FF3 an arena is too small, FF4 two layers of a slot share an
// arena, FF5 consecutive backwards share a gradient colour.
void check(const FirstFreePlan& plan, const LayerBytes& bytes);

}  // namespace slotgraph

#endif  // CORE_PLAN_PACKING_FIRST_FREE_H_

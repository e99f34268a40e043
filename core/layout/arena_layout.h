// The arenas of a capture: what every branch needs, the largest need of every colour, and the place
// of every tensor in them.
//
// All functions of this room are pure. This layout is that of sharing by copying; frame_layout.h
// has that of `placement`.
#ifndef CORE_LAYOUT_ARENA_LAYOUT_H_
#define CORE_LAYOUT_ARENA_LAYOUT_H_

#include <map>
#include <vector>

#include "core/layout/saved.h"
#include "core/layout/staging.h"
#include "core/layout/surface.h"

namespace slotgraph {

// One branch as its warm-up saw it.
struct BranchTensors {
  int colour = 0;                   // field 0
  int gradient_colour = 0;          // field 6
  int frame = 0;                    // equal: fields 1, 3 and 4 are
  int branch = 0;                   // field 2
  std::vector<TensorSpec> inputs;   // the first is the leading one
  std::vector<int> input_versions;  // of their storages, after the forward
  std::vector<int> module_state;    // storages of parameters and buffers
  std::vector<SurfaceTensor> outputs;
  std::vector<int> output_versions;
  std::vector<SavedTensor> saved;
  std::vector<SurfaceTensor> user_gradients;
};

struct BranchLayout {
  SurfaceLayout outputs;
  SavedLayout saved;
  SurfaceLayout user_gradients;
  std::int64_t need() const { return outputs.bytes + saved.spill_bytes; }
};

struct ArenaLayout {
  std::vector<BranchLayout> branches;
  // Bytes of each arena, the largest need of its branches; arenas without bytes do not exist.
  std::map<int, std::int64_t> arenas;
  std::map<int, std::int64_t> gradient_arenas;
  StagingPlan staging;
};

// Throws Error: C25 a branch without inputs, what check_frames of the outputs, then of the user
// gradients, plan_staging and lay_out_saved throw, in this order.
ArenaLayout lay_out(const std::vector<BranchTensors>& branches);

}  // namespace slotgraph

#endif  // CORE_LAYOUT_ARENA_LAYOUT_H_

// Where everything of one call with sharing mode `placement` lies.
#ifndef CORE_GRAPH_MODES_PLACEMENT_LAYOUT_H_
#define CORE_GRAPH_MODES_PLACEMENT_LAYOUT_H_

#include <map>
#include <vector>

#include "core/graph/modes/request.h"
#include "core/graph/warmup/profile.h"
#include "core/layout/frame_layout.h"

namespace slotgraph {

// Where input i of a frame lies: inputs that share a storage share a place and keep their distance.
struct InputPlace {
  Role role;
  std::size_t offset = 0;  // bytes from the role's place
};
struct InputPlaces {
  std::vector<InputPlace> of_input;
  std::vector<Survivor> survivors;
};
InputPlaces input_places(const Inputs& sample);

// Offsets in one slab: an arena for each saved colour, one for each gradient colour, then the
// staging sets of incoming gradients.
struct PlacementLayout {
  std::vector<FrameLayout> frames;     // by index of the layer in one variant
  std::vector<FrameLayout> gradients;  // of the leading gradient, by the same index
  std::map<int, std::pair<std::size_t, std::size_t>> saved;     // colour → offset, bytes
  std::map<int, std::pair<std::size_t, std::size_t>> returned;  // gradient colour → offset, bytes
  std::map<std::vector<TensorShape>, std::vector<std::size_t>> staging;
  std::size_t arena_bytes = 0;  // saved and gradient arenas
  std::size_t bytes = 0;        // of the slab

  Arena saved_arena(const std::shared_ptr<Slab>& slab, const Slot& slot) const;
  Arena gradient_arena(const std::shared_ptr<Slab>& slab, const Slot& slot) const;
};

// `profiles`: one for each module (field 5).
PlacementLayout lay_out(const CaptureRequest& request, const std::vector<BranchProfile>& profiles);

// The placing allocator's plan: each allocation's size, and the offset of those that have a role.
PlacementPlan placement_plan(const std::vector<ProfiledAllocation>& allocations,
                             const FrameLayout& layout, Arena arena);

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODES_PLACEMENT_LAYOUT_H_

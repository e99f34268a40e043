// Where everything of one call that shares memory lies: one slab for all of it.
#ifndef CORE_GRAPH_MODES_SLOT_LAYOUT_H_
#define CORE_GRAPH_MODES_SLOT_LAYOUT_H_

#include <map>
#include <optional>
#include <vector>

#include "core/graph/modes/request.h"
#include "core/graph/warmup/profile.h"
#include "core/layout/arena_layout.h"
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

// A part of the slab.
struct Extent {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

// A frame's survivors are born in its arena, or copied there.
struct SlotLayout {
  // Of frames whose survivors are born there, by index of the layer in one variant: survivors, and
  // the leading input's gradient.
  std::vector<FrameLayout> frames;
  std::vector<FrameLayout> gradients;
  // Of branches that are copied: index in `copies` by branch.
  ArenaLayout copies;
  std::vector<std::optional<std::size_t>> copy_of_branch;
  // Their static inputs: the storage of each input of each branch in the slab.
  std::vector<std::vector<Extent>> input_storages;

  std::map<int, Extent> saved;     // arena of each colour
  std::map<int, Extent> returned;  // arena of each gradient colour
  // Incoming gradients: one set of buffers for each ordered tuple of layouts.
  std::map<std::vector<TensorShape>, std::vector<std::size_t>> staging;
  std::size_t arena_bytes = 0;
  std::size_t bytes = 0;  // of the slab
};

// `profiles` and `copied`: one for each module (field 5). Nothing is allocated. Throws Error: L02
// to L09 as core/layout.
SlotLayout lay_out(const CaptureRequest& request, const std::vector<BranchProfile>& profiles,
                   const std::vector<bool>& copied);

// The branch as core/layout sees it, with numbers of storages that mean the same in all branches.
std::vector<BranchTensors> branch_tensors(const CaptureRequest& request,
                                          const std::vector<BranchProfile>& profiles,
                                          const std::vector<int>& branches);

// The placing allocator's plan: each allocation's size, and the offset of those that have a role.
PlacementPlan placement_plan(const std::vector<ProfiledAllocation>& allocations,
                             const FrameLayout& layout, Arena arena);

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODES_SLOT_LAYOUT_H_

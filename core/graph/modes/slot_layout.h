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

// What the captures of a call are laid out by. All offsets are those of the slab.
struct SlotLayout {
  // Placed frames: where the survivors of each layer of one variant are born, and where the
  // gradient of its leading input is.
  std::vector<FrameLayout> frames;
  std::vector<FrameLayout> gradients;
  // Copied branches: their layouts, and which of these each branch of the plan has.
  ArenaLayout copies;
  std::vector<std::optional<std::size_t>> copy_of_branch;
  // The storage of each static input of each copied branch.
  std::vector<std::vector<Extent>> input_storages;

  std::map<int, Extent> arenas;           // of each colour
  std::map<int, Extent> gradient_arenas;  // of each gradient colour
  // The places of incoming gradients: one set of buffers for each ordered tuple of layouts.
  std::map<std::vector<TensorShape>, std::vector<std::size_t>> staging;
  std::size_t arena_bytes = 0;
  std::size_t bytes = 0;  // of the slab
};

// `profiles`: one for each module (field 5); their kinds, equal for the variants of a layer, say
// which frames are copied. Nothing is allocated. Throws Error: L02 to L09 as core/layout.
SlotLayout lay_out_slots(const CaptureRequest& request, const std::vector<BranchProfile>& profiles);

// Those of the allocations that have a role.
std::vector<Survivor> survivors_of(const std::vector<ProfiledAllocation>& allocations);

// The branch as core/layout sees it, with numbers of storages that mean the same in all branches.
std::vector<BranchTensors> branch_tensors(const CaptureRequest& request,
                                          const std::vector<BranchProfile>& profiles,
                                          const std::vector<int>& branches);

// The placing allocator's plan: each allocation's size, and the offset of those that have a role.
PlacementPlan placement_plan(const std::vector<ProfiledAllocation>& allocations,
                             const FrameLayout& layout, Arena arena);

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODES_SLOT_LAYOUT_H_

// The tensors of every branch over the slab of its call: static inputs, places of copies, incoming
// gradients.
#ifndef CORE_GRAPH_MODES_SLOT_PLACES_H_
#define CORE_GRAPH_MODES_SLOT_PLACES_H_

#include <memory>
#include <vector>

#include "core/graph/capture/branch_capture.h"
#include "core/graph/modes/slot_layout.h"

namespace slotgraph {

// The request and the profiles must outlive it; tensors that it makes hold the slab.
class SlotPlaces {
 public:
  SlotPlaces(const CaptureRequest& request, const std::vector<BranchProfile>& profiles,
             SlotLayout layout, std::shared_ptr<Slab> slab)
      : request_(request),
        profiles_(profiles),
        layout_(std::move(layout)),
        slab_(std::move(slab)) {}

  const SlotLayout& layout() const { return layout_; }
  const std::shared_ptr<Slab>& slab() const { return slab_; }
  // Null unless the branch is copied.
  const BranchLayout* copy_of(int branch) const;
  bool returns_leading_gradient(int branch) const;

  Tensors static_inputs(int branch) const;
  // Of a copied branch, over its static inputs.
  CopyTargets copy_targets(int branch, const Tensors& inputs) const;
  // Of another one: only a leading gradient that its backward does not allocate has a place.
  CopyTargets leading_target(int branch) const;
  Tensors incoming(int branch) const;
  PlacementPlan forward_plan(int branch) const;
  PlacementPlan backward_plan(int branch) const;
  Ownership ownership(int branch) const;

 private:
  const Slot& slot_of(int branch) const { return request_.plan.slots[branch]; }
  int layer_of(int branch) const {
    return slot_of(branch).warmup_alias_group % request_.plan.layers();
  }
  const BranchProfile& profile_of(int branch) const {
    return profiles_[slot_of(branch).warmup_alias_group];
  }
  Arena arena(const Extent& extent) const { return {slab_, extent.offset, extent.bytes}; }
  Arena saved(int branch) const;
  Arena gradients(int branch) const;

  const CaptureRequest& request_;
  const std::vector<BranchProfile>& profiles_;
  SlotLayout layout_;
  std::shared_ptr<Slab> slab_;
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODES_SLOT_PLACES_H_

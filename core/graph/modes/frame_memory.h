// The memory of one branch of a slot graph: where its tensors lie, and what its captures are told
// so that they lie there. A frame's survivors are born in their places or copied to them: one class
// for each, chosen once, when a branch is captured.
#ifndef CORE_GRAPH_MODES_FRAME_MEMORY_H_
#define CORE_GRAPH_MODES_FRAME_MEMORY_H_

#include <memory>
#include <vector>

#include "core/graph/capture/branch_capture.h"
#include "core/graph/modes/slot_layout.h"

namespace slotgraph {

// A capture allocated otherwise than its profile says; carries the better profile, and what was
// allocated: none of it may live on, since a graph that is discarded never writes it.
struct ProfileMismatch {
  int module;
  bool forward;
  std::vector<ProfiledAllocation> merged;
  std::shared_ptr<const Recording> recording;
};

// One branch and what the plan and the layout say of it. Refers to the call's request and profiles.
struct SlotBranch {
  int index;
  int module;
  int layer;  // over all chunks
  const Slot& slot;
  BranchSource source;
  Arena frame;     // of its colour: survivors
  Arena gradient;  // of its gradient colour: the leading input's gradient
};

// For one branch from its forward's capture to its backward's. Tensors that it makes hold the slab.
class FrameMemory {
 public:
  // The layout must be that of the branch's call and outlive the memory.
  static std::unique_ptr<FrameMemory> of(const SlotBranch& branch, const SlotLayout& layout);
  virtual ~FrameMemory() = default;

  const SlotBranch& branch() const { return branch_; }
  const std::shared_ptr<Slab>& slab() const { return branch_.frame.slab; }
  bool is_copied() const { return branch_.source.profile.kind == FrameKind::kCopied; }
  bool returns_leading_gradient() const;
  // Over the static places of the inputs; those that share a storage in the sample share one here.
  const Tensors& static_inputs() const { return inputs_; }
  // Over the places of the incoming gradients.
  Tensors incoming() const;

  // What the captures are told. After each the memory looks at what came out: throws
  // ProfileMismatch if an allocation was not born where the layout says.
  virtual CaptureMemory begin_forward() const = 0;
  virtual void settle_forward(const OpenBranch& open) const = 0;
  virtual CaptureMemory begin_backward() const = 0;
  virtual void settle_backward(const OpenBranch& open, const Tensors& gradients) const = 0;
  // The branch's autograd graph is gone. Throws Error PM01 if something of a placed frame lives.
  virtual void end(const OpenBranch& open) const = 0;

  virtual std::size_t survivor_bytes() const = 0;
  virtual Ownership ownership() const = 0;

 protected:
  FrameMemory(const SlotBranch& branch, const SlotLayout& layout, Tensors inputs)
      : branch_(branch), layout_(layout), inputs_(std::move(inputs)) {}

  const SlotBranch branch_;
  const SlotLayout& layout_;
  const Tensors inputs_;
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODES_FRAME_MEMORY_H_

// Captures the branches of a slot plan into one pool: what survives lies in the arenas of one slab.
// The sharing modes differ in what they copy and in which order they call it.
#ifndef CORE_GRAPH_MODES_SLOT_CAPTURE_H_
#define CORE_GRAPH_MODES_SLOT_CAPTURE_H_

#include <map>
#include <memory>
#include <vector>

#include "core/graph/capture/branch_capture.h"
#include "core/graph/modes/slot_places.h"
#include "core/graph/warmup/warm_up.h"

namespace slotgraph {

// A capture allocated otherwise than its profile says; carries the better profile, and what was
// allocated: none of it may live on, since a graph that is discarded never writes it.
struct ProfileMismatch {
  int module;
  bool forward;
  std::vector<ProfiledAllocation> merged;
  std::shared_ptr<const Recording> recording;
};

// The profile of every module, from its first branch's sample. Throws Error as warm_up.
std::vector<BranchProfile> warm_up_all(const CaptureRequest& request, Watch watch);

class SlotCapture {
 public:
  // `profiles` and `copied`: one for each module; the profiles must outlive this. A frame that is
  // copied was warmed up with its saved tensors watched, another one with its allocations.
  // Allocates the slab. Throws Error as lay_out, c10::OutOfMemoryError.
  SlotCapture(const CaptureRequest& request, const std::vector<BranchProfile>& profiles,
              const std::vector<bool>& copied);

  // Capture one branch; a backward follows its forward. Throw ProfileMismatch, and Error: K01 to
  // K07 and PS01 (branch_capture.h), PM01, PM02 an output in memory of neither the frame nor its
  // module, K09 an allocation of a copied frame lives on that no saved-tensor hook saw and no
  // module holds, unless `lockstep`, where the caller looks for it.
  void forward(int branch, bool lockstep = false);
  void backward(int branch, bool lockstep = false);

  // All variants, the one with the most survivor bytes first, each in its base order.
  void capture_variant_major();
  std::unique_ptr<CallableSet> finish();

  const PrivatePool& pool() const { return *pool_; }
  // Storages that may own blocks of the pool between captures: the slab, what modules hold, and
  // copied tensors that autograd still has.
  std::vector<c10::Storage> roots() const;

 private:
  const Slot& slot_of(int branch) const { return request_.plan.slots[branch]; }
  int module_of(int branch) const { return slot_of(branch).warmup_alias_group; }
  const BranchProfile& profile_of(int branch) const { return profiles_[module_of(branch)]; }
  BranchSource source(int branch, const Tensors& inputs, const CopyTargets* copies) const;
  CaptureSite site() const { return {pool_->id(), request_.options.generators}; }
  void keep_outputs(OpenBranch& open, int branch) const;
  void keep_gradients(OpenBranch& open, int branch, const Tensors& gradients) const;
  Tensors capture_gradients(OpenBranch& open, int branch);
  void check_live(const std::map<const void*, std::size_t>& before) const;
  std::vector<int> variants_by_survivor_bytes() const;
  std::vector<FlightPlan> flights() const;

  const CaptureRequest& request_;
  const std::vector<BranchProfile>& profiles_;
  std::shared_ptr<PrivatePool> pool_;
  SlotPlaces places_;
  std::map<int, OpenBranch> open_;
  std::map<int, CopyTargets> targets_;  // of open branches
  std::vector<CapturedBranch> branches_;
  std::size_t copied_bytes_ = 0;
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODES_SLOT_CAPTURE_H_

// Captures the branches of a slot plan into one pool: what survives lies in the arenas of one slab.
// The sharing modes differ in how frames get their memory (frame_memory.h) and in which order they
// are captured.
#ifndef CORE_GRAPH_MODES_SLOT_CAPTURE_H_
#define CORE_GRAPH_MODES_SLOT_CAPTURE_H_

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/graph/modes/frame_memory.h"
#include "core/graph/modes/request.h"
#include "core/graph/replay/flight.h"

namespace slotgraph {

// Who looks for what the capture of a copied frame leaves in the pool: it must belong to a module
// (K09).
enum class LeakCheck {
  kAfterEachCapture,
  kByTheCaller,  // whose checkpoints find the owner of every block
};

class SlotCapture {
 public:
  // `profiles`: one for each module, of placed or copied frames; they must outlive this. Allocates
  // the slab. Throws Error as lay_out_slots, c10::OutOfMemoryError.
  SlotCapture(const CaptureRequest& request, const std::vector<BranchProfile>& profiles,
              LeakCheck leaks = LeakCheck::kAfterEachCapture);

  // Capture one branch; a backward follows its forward. Throw ProfileMismatch, and Error: K01 to
  // K07 and PS01 (branch_capture.h), PM01, PM02 an output in memory of neither the frame nor its
  // module, K09 an allocation of a copied frame lives on that no saved-tensor hook saw and no
  // module holds.
  void forward(int branch);
  void backward(int branch);

  // All variants, the one with the most survivor bytes first, each in its base order.
  void capture_variant_major();
  std::unique_ptr<CallableSet> finish();

  const PrivatePool& pool() const { return *pool_; }
  // Storages that may own blocks of the pool between captures: the slab, what modules hold, and
  // copied tensors that autograd still has.
  std::vector<c10::Storage> roots() const;

 private:
  struct Frame {
    std::unique_ptr<FrameMemory> memory;
    OpenBranch open;
  };
  using Live = std::optional<std::map<const void*, std::size_t>>;  // none: it is not looked at

  std::unique_ptr<FrameMemory> memory_of(int branch) const;
  CaptureSite site() const { return {pool_->id(), request_.options.generators}; }
  void capture_gradients(OpenBranch& open, const FrameMemory& memory) const;
  Live live(const FrameMemory& memory) const;
  void check_leaks(const Live& before) const;
  std::vector<int> variants_by_survivor_bytes() const;
  std::vector<FlightPlan> flights() const;

  const CaptureRequest& request_;
  const std::vector<BranchProfile>& profiles_;
  const LeakCheck leaks_;
  std::shared_ptr<PrivatePool> pool_;
  SlotLayout layout_;
  std::shared_ptr<Slab> slab_;
  std::map<int, Frame> open_;
  std::vector<CapturedBranch> branches_;
  std::size_t copied_bytes_ = 0;
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODES_SLOT_CAPTURE_H_

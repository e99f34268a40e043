// The seven-field slot plan: which captures may share memory.
#ifndef CORE_PLAN_PLAN_H_
#define CORE_PLAN_PLAN_H_

#include <string>
#include <vector>

#include "core/order/pipeline_order.h"

namespace slotgraph {

// One slot: the seven fields of one branch.
struct Slot {
  int colour = 0;  // colour: frames with equal colours are never live together
  int physical_slot = 0;
  int io_branch_id = 0;
  int model_chunk = 0;
  int layer = 0;
  int module = 0;           // index of the wrapped module
  int gradient_colour = 0;  // colour of the returned input gradient
  bool operator==(const Slot&) const = default;
};

// A plain value. Slots are in emission order: variant, chunk, physical slot, layer. A frame is
// (chunk, physical slot, layer); a branch is a frame in one variant and has the index of its slot.
struct Plan {
  std::string name;
  PipelineShape shape;
  std::vector<int> layers_per_chunk;  // graphable layers of each chunk; may be 0
  std::vector<int> cp_sizes;          // of each variant, descending
  int ring_length = 1;                // physical slots of each chunk
  std::vector<int> covered_counts;    // numbers of microbatches that a step may have, ascending
  Order base_order;  // of one variant for ring_length microbatches: the order of capture
  std::vector<Slot> slots;
  // Colour of the returned gradient of every (chunk, physical slot), also of chunks without layers.
  std::vector<std::vector<int>> gradient_colours;

  int variants() const { return static_cast<int>(cp_sizes.size()); }
  int chunks() const { return static_cast<int>(layers_per_chunk.size()); }
  int layers() const;  // over all chunks
  int frames() const { return ring_length * layers(); }
  // Index of a branch. Arguments must be in range.
  int branch(int variant, int chunk, int physical_slot, int layer) const;
  int frame(int chunk, int physical_slot, int layer) const {
    return branch(0, chunk, physical_slot, layer);
  }
  // The opposite way, of a branch of a checked plan: its frame, the frame's layer over all chunks,
  // the variant, and the module of both, by the numbering of field 5.
  int frame_of(int branch) const { return branch % frames(); }
  int variant_of(int branch) const { return branch / frames(); }
  int module_of(int branch) const { return slots[static_cast<std::size_t>(branch)].module; }
  int layer_of(int branch) const { return module_of(branch) % layers(); }
  // Modules are numbered by variant, then layer over all chunks.
  int modules() const { return variants() * layers(); }
  int layer_of_module(int module) const { return module % layers(); }
  int variant_of_module(int module) const { return module / layers(); }
  // The branch in physical slot 0.
  int first_branch(int module) const;
  // The physical slot that a microbatch has in every chunk.
  int slot_of(int microbatch) const { return microbatch % ring_length; }
};

inline constexpr int kMostFrames = 1 << 14;  // of a plan, and places: slots of all chunks

// Checks what a plan says besides its slots and its base order. Throws Error: PL00 ring, sizes,
// chunks, layers, frames or counts out of range or order; then OP1, OP2 for the first covered count
// that the schedulers do not run.
void check_shape(const Plan& plan);

// Checks the fields of the slots against each other, and the colours against the liveness behind
// them. Throws Error with the first broken rule, each over all slots before the next:
//   PL00 as check_shape; numbers of slots and of gradient colours (a plan without layers has none);
//   a base order of other than ring_length microbatches
//   OP1, OP2 as check_shape
//   PL01 a field or gradient colour below 0, or not below the number of slots or that of chunks,
//   whichever is larger
//   PL09 a slot of a chunk without layers; PL13 chunk, slot, layer not in emission order
//   PL08 field 5 is not the module of the variant and layer
//   PL02 a branch twice in its frame
//   PL03 fields 0, 6 differ between variants of a frame
//   PL06 field 6 is not the gradient colour of its chunk and slot
//   OR1, OR2 the base order
//   PL14 ring too short: a place is entered while it is live, or is back-propagated twice in a row,
//   PL04 frames live together share a colour, PL05 consecutive backwards share a gradient colour:
//   event by event in the orders of the covered counts and in the base order. A chunk without
//   layers returns no gradient: its events are no partners in PL05 nor in the second half of PL14,
//   but do come between others. A plan without layers has nothing that lives.
void check(const Plan& plan);
// Checks the same rules up to OR2: they make a plan's numbers safe to use as indices.
void check_structure(const Plan& plan);

// Whether the base order, in which branches are captured, holds PL04 and PL05 as well: the public
// planner's plans need not. The plan must hold check_structure.
bool covers_capture(const Plan& plan);

// Checks an order that a step is about to run on a checked plan, whatever the variants of its
// microbatches. Throws Error: OR1, OR2; PL15 a number of microbatches that the plan does not cover;
// PL14, PL04, PL05 as above for an order that is not the plan's own.
void check_step(const Plan& plan, const Order& order);

}  // namespace slotgraph

#endif  // CORE_PLAN_PLAN_H_

// Where the tensors that a forward saves for its backward lie while the branch is live.
#ifndef CORE_LAYOUT_SAVED_H_
#define CORE_LAYOUT_SAVED_H_

#include <optional>
#include <vector>

#include "core/layout/surface.h"

namespace slotgraph {

// An input or output that a saved tensor may be a part of.
struct Boundary {
  enum class Kind { kInput, kOutput };  // inputs are preferred
  Kind kind = Kind::kInput;
  int index = 0;  // of its kind; input 0 is the leading one
  TensorSpec tensor;
  int version = 0;  // of its storage, after the forward
};

struct SavedTensor {
  bool internal = true;  // else it lies in module state or on the CPU and needs no place
  TensorSpec tensor;
  int version = 0;  // of its storage, when it was saved: later writes make another copy
  bool operator==(const SavedTensor&) const = default;
};

// The boundary that a saved tensor is a part of: of those of its storage whose range contains it,
// first one of its version, then the smallest, then an input, then the lowest index, then the one
// that begins last. None if there is no such boundary.
std::optional<int> boundary_of(const SavedTensor& saved, const std::vector<Boundary>& boundaries);

struct SavedPlace {
  enum class Region {
    kArena,    // of the branch's colour: its outputs, or the spill behind them
    kStaging,  // the buffer into which the leading input is copied
  };
  Region region = Region::kArena;
  std::int64_t offset = 0;   // bytes from the region's start; for staging, from the storage's start
  bool is_boundary = false;  // lies in an output or the leading input: needs no copy of its own
  int component = 0;         // equal: one cluster
  bool operator==(const SavedPlace&) const = default;
};

struct SavedLayout {
  std::vector<std::optional<SavedPlace>> places;  // none: external, or without bytes
  std::int64_t spill_bytes = 0;                   // behind the outputs
};

// `outputs` are the branch's, and `boundaries` name their indices. A cluster that one member's
// boundary covers whole lies in that boundary, if it is an output or the leading input and of the
// member's version; the others follow the outputs, largest first. Throws Error: L08 an offset that
// is no multiple of the item, L09 a boundary that is in no arena.
SavedLayout lay_out_saved(const std::vector<SavedTensor>& saved,
                          const std::vector<Boundary>& boundaries, const SurfaceLayout& outputs);

}  // namespace slotgraph

#endif  // CORE_LAYOUT_SAVED_H_

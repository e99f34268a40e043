// What a branch shows to its callers, its outputs and returned gradients: where they lie in arenas,
// and what the branches of one frame must have in common.
#ifndef CORE_LAYOUT_SURFACE_H_
#define CORE_LAYOUT_SURFACE_H_

#include <optional>
#include <vector>

#include "core/layout/tensor_spec.h"

namespace slotgraph {

struct SurfaceTensor {
  enum class Kind {
    kNone,         // no tensor of the device: passed through, in no arena
    kModuleState,  // lies in a parameter or buffer: its own address, in no arena
    kArena,
  };
  Kind kind = Kind::kArena;
  TensorSpec tensor;  // unless kNone
  bool operator==(const SurfaceTensor&) const = default;
};

struct SurfaceLayout {
  std::vector<std::optional<std::int64_t>> offsets;  // bytes from the arena's start; kArena only
  std::int64_t bytes = 0;                            // a multiple of kPieceAlignment
};

// Outputs: tensors of one storage, empty ones too, keep their relative places, all else is apart.
// Storages come in the order in which they are first seen.
SurfaceLayout lay_out_outputs(const std::vector<SurfaceTensor>& outputs);
// Returned gradients: one after another; aliases are not kept.
SurfaceLayout lay_out_gradients(const std::vector<SurfaceTensor>& gradients);

struct Surface {
  int frame = 0;  // equal: the same slot, chunk and layer
  int branch = 0;
  std::vector<SurfaceTensor> tensors;
};

// Throws Error with the first broken rule: L02 a branch twice in a frame, over all surfaces first;
// then frame by frame, in order of first appearance, against its first surface: L03 numbers of
// tensors; L04 two positions that lie in arenas in both branches share a storage in one of them
// only; then position by position: L05 a tensor or module state against none, L06 module state
// against a tensor, L07 type, device or requires_grad of a tensor. Module state is not compared
// with module state; sizes and strides may differ.
void check_frames(const std::vector<Surface>& surfaces);

}  // namespace slotgraph

#endif  // CORE_LAYOUT_SURFACE_H_

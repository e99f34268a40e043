// The layer zoo: the blocks that cases are made of.
//
// Every block maps its first input [tokens, hidden] to a first output of the same sizes, so that
// blocks chain. To add one, write a make function and call register_block before main (README.md,
// "Add your own block").
#ifndef CORE_MODELS_BLOCKS_H_
#define CORE_MODELS_BLOCKS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/graph/graph_module.h"

namespace slotgraph {

struct BlockShape {
  std::int64_t hidden = 16;
  at::ScalarType dtype = at::kFloat;
};

// An input besides the first one, which is [tokens, hidden] of the block's dtype.
struct ExtraInput {
  std::string name;       // empty: positional
  bool per_token = true;  // [tokens, hidden], else [hidden]
  bool requires_grad = true;
  bool shared = false;  // one tensor for all frames of a microbatch
};

struct BlockKind {
  std::string name;
  // Parameters and buffers on the device, filled from `seed`.
  std::function<GraphModule(const BlockShape& shape, std::uint64_t seed)> make;
  std::vector<ExtraInput> extra_inputs = {};
  // Its backward reads tensors that no saved-tensor hook sees: modes that copy must refuse it.
  bool hides_saves = false;
};

// In order of registration; the built-in blocks come first. Names are unique.
const std::vector<BlockKind>& blocks();
std::vector<std::string> block_names();
// Throws Error M01 if the name is taken.
bool register_block(BlockKind kind);
// Throws Error M02 if there is none.
const BlockKind& find_block(const std::string& name);

}  // namespace slotgraph

#endif  // CORE_MODELS_BLOCKS_H_

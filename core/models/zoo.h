// The built-in blocks.
#ifndef CORE_MODELS_ZOO_H_
#define CORE_MODELS_ZOO_H_

#include <vector>

#include "core/models/blocks.h"

namespace slotgraph {

std::vector<BlockKind> plain_blocks();
// Blocks whose outputs, saved tensors or state alias, or have unusual layouts.
std::vector<BlockKind> alias_blocks();

}  // namespace slotgraph

#endif  // CORE_MODELS_ZOO_H_

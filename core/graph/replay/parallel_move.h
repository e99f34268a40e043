// Copies to static places that may overlap their sources.
#ifndef CORE_GRAPH_REPLAY_PARALLEL_MOVE_H_
#define CORE_GRAPH_REPLAY_PARALLEL_MOVE_H_

#include "core/graph/graph_module.h"

namespace slotgraph {

// Copies sources to targets of equal sizes, in stream order, as if all sources were read before any
// target is written. A source that is its target already (address, strides and dtype) is not
// copied.
void parallel_move(const Tensors& sources, const Tensors& targets);

}  // namespace slotgraph

#endif  // CORE_GRAPH_REPLAY_PARALLEL_MOVE_H_

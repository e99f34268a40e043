// The arguments of a replay, before anything is copied.
#ifndef CORE_GRAPH_REPLAY_ARGUMENTS_H_
#define CORE_GRAPH_REPLAY_ARGUMENTS_H_

#include <string>
#include <vector>

#include "core/graph/graph_module.h"

namespace slotgraph {

// The inputs in captured order: positional ones, then named ones by name. Throws Error: P01 a name
// is missing, P05 another number of inputs or a name that was not captured.
Tensors arguments_of(const Inputs& inputs, std::size_t positional,
                     const std::vector<std::string>& names, int branch);

// Throws Error P05 if an input differs from its static place in sizes, dtype, device or layout, or
// if the places' device is not the current one.
void check_inputs(const Tensors& inputs, const Tensors& places, int branch);

// Throws Error P03 if there is another number of incoming gradients than of places, or one of other
// sizes or dtype. Undefined ones are zeros.
void check_incoming(const Tensors& gradients, const Tensors& places, int branch);

}  // namespace slotgraph

#endif  // CORE_GRAPH_REPLAY_ARGUMENTS_H_

// What a capture leaves of one branch, and a replay runs.
#ifndef CORE_GRAPH_CAPTURED_BRANCH_H_
#define CORE_GRAPH_CAPTURED_BRANCH_H_

#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/graph/callable.h"
#include "core/graph/graph_module.h"

namespace slotgraph {

// Graphs, and tensors over the static memory that they read and write. No
// autograd history.
struct CapturedBranch {
  std::unique_ptr<device::Graph> forward;
  std::unique_ptr<device::Graph> backward;  // null if nothing is differentiable
  GraphModule module;
  bool training = true;
  std::size_t positional = 0;         // inputs before the named ones
  std::vector<std::string> names;     // of the named inputs
  Tensors inputs;                     // static places of Inputs::all()
  std::vector<bool> input_gradients;  // which inputs a gradient is returned for
  Tensors parameters;                 // trainable ones
  // Parameters and buffers of the module, and where each lay: the graphs read them there.
  Tensors state;
  std::vector<const void*> state_places;
  Tensors outputs;                   // undefined where the module returns none
  std::vector<bool> lent;            // which outputs lie in the frame's memory
  std::vector<bool> differentiable;  // of each output
  Tensors incoming;                  // static incoming gradient of each differentiable output
  // Of each input, then each parameter; undefined where there is none.
  Tensors gradients;
  bool leading_stays = false;  // gradients[0] is returned in place, not cloned
  Ownership ownership;
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_CAPTURED_BRANCH_H_

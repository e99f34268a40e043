// What a failure must leave as it was, as far as the outside can see it.
#ifndef FUZZ_FAULT_STATE_H_
#define FUZZ_FAULT_STATE_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "core/graph/graph_module.h"

namespace slotgraph::fuzz {

// A snapshot by names: allocator topology and counters, device memory, graphs, captures, process
// state of torch, identity and flags of the modules' tensors.
class StateSnapshot {
 public:
  // Waits for the device and empties the allocator's cache first.
  static StateSnapshot take(const std::vector<GraphModule>& modules);

  // `name: found X, expected Y` for each that differs from `before`.
  std::vector<std::string> differences(const StateSnapshot& before) const;

 private:
  std::map<std::string, std::string> values_;
};

// Every segment of every pool, one a line: device, pool, address, size, and its blocks with their
// sizes, `a` allocated, `p` freed and waiting for an event, `f` free.
std::string allocator_topology();

// SHA-256 of the bytes of all parameters and buffers, and of the default generator's state.
std::string contents_digest(const std::vector<GraphModule>& modules);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_FAULT_STATE_H_

// The layout oracle: a static checker of arena layouts, independent of the code that makes them.
#ifndef CORE_TESTING_LAYOUT_LAYOUT_CHECKER_H_
#define CORE_TESTING_LAYOUT_LAYOUT_CHECKER_H_

#include <string>
#include <vector>

#include "core/layout/arena_layout.h"

namespace slotgraph::testing {

// All that is wrong with a layout of branches that lay_out() accepts; empty: it is right. Each
// begins with one of these tags:
//   shape:      another number of branches or tensors; nothing else of them is checked
//   place:      a tensor without its place, or a place without a tensor in the arena
//   bounds:     outside its region or arena
//   alignment:  a piece not at a multiple of 256, or a view not at one of its item
//   overlap:    bytes shared by tensors that are no declared aliases
//   alias:      declared aliases that do not keep their relative places
//   boundary:   backed by a boundary that does not cover the cluster, or not by one that does
//   size:       bytes that are not exactly the need
//   address:    not in the contract's order, or not where another branch of the frame has it
//   staging:    a wrong group, a storage that cannot serve, or fewer on storages than possible
std::vector<std::string> violations(const std::vector<BranchTensors>& branches,
                                    const ArenaLayout& layout);

}  // namespace slotgraph::testing

#endif  // CORE_TESTING_LAYOUT_LAYOUT_CHECKER_H_

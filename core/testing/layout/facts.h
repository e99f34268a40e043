// What is true of one branch's tensors, found without the span arithmetic of core/layout: every
// element is visited and every byte is painted.
#ifndef CORE_TESTING_LAYOUT_FACTS_H_
#define CORE_TESTING_LAYOUT_FACTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/layout/arena_layout.h"

namespace slotgraph::testing {

// From the first byte of a tensor's elements to past their last one, in its storage.
struct Hull {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool empty() const { return begin == end; }
  std::int64_t bytes() const { return end - begin; }
};

Hull hull(const TensorSpec& tensor);
bool covers(const Hull& outer, const Hull& inner);
std::int64_t pieces_of_256(std::int64_t bytes);  // rounded up to whole pieces, in bytes

// Tensors of one storage that keep their relative places in an arena.
struct Piece {
  std::int64_t origin = 0;  // first byte in the storage, rounded down to the largest item
  std::int64_t end = 0;
  std::vector<int> members;  // ascending
  std::int64_t bytes() const { return end - origin; }
};

// Of the arena tensors, by storage, in the order in which the storages are first seen.
std::vector<Piece> output_pieces(const std::vector<SurfaceTensor>& outputs);

// The input or output that a saved tensor was seen to be a part of.
struct Home {
  bool is_output = false;
  int index = 0;
  bool operator==(const Home&) const = default;
};

struct Cluster {
  Piece piece;               // of saved tensors
  std::optional<Home> home;  // the boundary that backs it: an output or the leading input
};

// Of the internal saved tensors with bytes: those of one storage and version that share a byte,
// directly or through others; in order of their first members.
std::vector<Cluster> saved_clusters(const BranchTensors& branch);

}  // namespace slotgraph::testing

#endif  // CORE_TESTING_LAYOUT_FACTS_H_

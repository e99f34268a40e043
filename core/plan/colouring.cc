#include "core/plan/colouring.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace slotgraph {
namespace {

// Rank, saturation, degree and reversed node number in one key; a coloured node has none.
constexpr int kDegreeShift = 15, kSaturationShift = 30, kRankShift = 45;
static_assert(kMostNodes < 1 << kDegreeShift);

}  // namespace

// Why the result is right: a node gets the smallest colour that no coloured neighbour has, so
// neighbours differ in whatever order nodes come. That colour has a bit in the node's words,
// because a node has fewer neighbours than the graph has nodes. The order only keeps colours few.
// It is one comparison of keys, whose parts cannot run into each other, since each is smaller than
// the distance of the shifts. No two keys are equal, because the number of the node is a part: the
// result depends on the graph alone, so peers with equal graphs get equal plans.

Colouring dsatur(const ConflictGraph& graph) {
  return dsatur(graph, std::vector<int>(graph.nodes()));
}

Colouring dsatur(const ConflictGraph& graph, const std::vector<int>& ranks) {
  const int nodes = graph.nodes();
  const int words = (nodes + 63) / 64;
  std::vector<std::int64_t> keys(nodes);
  for (int node = 0; node < nodes; ++node) {
    keys[node] = (static_cast<std::int64_t>(ranks[node]) << kRankShift) +
                 (static_cast<std::int64_t>(graph.degree(node)) << kDegreeShift) +
                 (nodes - 1 - node);
  }
  std::vector<std::uint64_t> taken(static_cast<std::size_t>(nodes) * words);  // by neighbours
  Colouring colouring(nodes);
  for (int step = 0; step < nodes; ++step) {
    const int node = static_cast<int>(std::max_element(keys.begin(), keys.end()) - keys.begin());
    const std::uint64_t* mine = taken.data() + static_cast<std::size_t>(node) * words;
    int word = 0;
    while (mine[word] == ~std::uint64_t{0}) ++word;
    const int bit = std::countr_one(mine[word]);
    colouring[node] = word * 64 + bit;
    keys[node] = -1;
    for_each_bit(graph.neighbours(node), [&](int neighbour) {
      if (keys[neighbour] < 0) return;
      std::uint64_t& theirs = taken[static_cast<std::size_t>(neighbour) * words + word];
      keys[neighbour] += static_cast<std::int64_t>((~theirs >> bit) & 1) << kSaturationShift;
      theirs |= std::uint64_t{1} << bit;
    });
  }
  return colouring;
}

int colours_of(const Colouring& colouring) {
  return colouring.empty() ? 0 : *std::max_element(colouring.begin(), colouring.end()) + 1;
}

}  // namespace slotgraph

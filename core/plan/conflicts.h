// Which frames are live together: the conflict graphs that colours must respect.
#ifndef CORE_PLAN_CONFLICTS_H_
#define CORE_PLAN_CONFLICTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/order/pipeline_order.h"

namespace slotgraph {

// An undirected graph without loops, as one bit set a node.
class ConflictGraph {
 public:
  explicit ConflictGraph(int nodes)
      : nodes_(nodes), words_((nodes + 63) / 64), bits_(static_cast<std::size_t>(nodes) * words_) {}

  int nodes() const { return nodes_; }
  void connect(int a, int b) {
    bits_[word(a, b)] |= bit(b);
    bits_[word(b, a)] |= bit(a);
  }
  bool connected(int a, int b) const { return (bits_[word(a, b)] & bit(b)) != 0; }
  // The neighbours of a node: bit b of word b / 64.
  std::span<const std::uint64_t> neighbours(int node) const {
    return {bits_.data() + static_cast<std::size_t>(node) * words_,
            static_cast<std::size_t>(words_)};
  }
  int degree(int node) const;
  std::int64_t edges() const;
  bool operator==(const ConflictGraph&) const = default;

 private:
  std::size_t word(int a, int b) const { return static_cast<std::size_t>(a) * words_ + b / 64; }
  static std::uint64_t bit(int b) { return std::uint64_t{1} << (b % 64); }

  int nodes_;
  int words_;
  std::vector<std::uint64_t> bits_;
};

// Calls visit(b) for every bit b of a set, ascending.
template <typename Visit>
void for_each_bit(std::span<const std::uint64_t> set, Visit visit) {
  for (std::size_t word = 0; word < set.size(); ++word) {
    for (std::uint64_t rest = set[word]; rest != 0; rest &= rest - 1)
      visit(static_cast<int>(word * 64) + __builtin_ctzll(rest));
  }
}

// What the covered orders make live. A place is (chunk, physical slot), numbered chunk * ring +
// slot; microbatch m has slot m mod ring.
struct Liveness {
  ConflictGraph together;    // places that are live together
  ConflictGraph successive;  // places of consecutive backward events, chunks without layers as well
  std::int64_t peak = 0;     // largest weight that is live at once
  std::vector<int> peak_places;  // that are live then
};

// Walks the orders, each of which must hold check_order. `weights` has the weight of each place, or
// is empty: the peak is then 0. Throws Error PL14 if the ring is too short: a place is entered
// while it is live, or is back-propagated twice in a row.
Liveness walk(const std::vector<Order>& orders, int chunks, int ring_length,
              const std::vector<std::int64_t>& weights);

// The orders that hold every conflict of the orders of all `counts`, and of a capture if
// `with_capture`: shorter aligned counts run a prefix of longer ones as far as conflicts go, and
// from the warm-up on conflicts repeat after lcm(group size, ring) microbatches.
std::vector<Order> covering_orders(const PipelineShape& shape, const std::vector<int>& counts,
                                   int ring_length, bool with_capture);

// Conflicts between frames, numbered by chunk, slot, layer: those of their places, and the layers
// of one place among each other.
ConflictGraph frame_conflicts(const ConflictGraph& places, const std::vector<int>& layers_per_chunk,
                              int ring_length);

}  // namespace slotgraph

#endif  // CORE_PLAN_CONFLICTS_H_

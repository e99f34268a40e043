#include "core/plan/packing/clique.h"

#include <algorithm>
#include <bit>

namespace slotgraph {
namespace {

using Bits = std::vector<std::uint64_t>;

bool take_lowest(Bits& bits, int& node) {
  for (std::size_t word = 0; word < bits.size(); ++word) {
    if (bits[word] == 0) continue;
    node = static_cast<int>(word * 64) + std::countr_zero(bits[word]);
    bits[word] &= bits[word] - 1;
    return true;
  }
  return false;
}

class Search {
 public:
  Search(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
         const std::vector<int>& known, std::int64_t steps)
      : graph_(graph), weights_(weights), most_steps_(steps) {
    best_.nodes = known;
    for (const int node : known) best_.weight += weights[node];
  }

  Clique run() {
    Bits all((graph_.nodes() + 63) / 64);
    for (int node = 0; node < graph_.nodes(); ++node)
      all[node / 64] |= std::uint64_t{1} << node % 64;
    expand(all, 0);
    best_.heaviest = best_.steps < most_steps_;
    std::sort(best_.nodes.begin(), best_.nodes.end());
    return std::move(best_);
  }

 private:
  struct Bounded {
    int node;
    std::int64_t bound;  // of the weight that this node and those before it can add
  };

  // Colours the candidates greedily; each colour adds its heaviest node to the bound.
  std::vector<Bounded> bound(Bits candidates) const {
    std::vector<Bounded> order;
    std::int64_t sum = 0;
    int node = 0;
    for (Bits rest = candidates;
         std::any_of(rest.begin(), rest.end(), [](auto w) { return w != 0; }); rest = candidates) {
      std::int64_t heaviest = 0;
      const std::size_t first = order.size();
      while (take_lowest(rest, node)) {
        candidates[node / 64] &= ~(std::uint64_t{1} << node % 64);
        const auto neighbours = graph_.neighbours(node);
        for (std::size_t word = 0; word < rest.size(); ++word) rest[word] &= ~neighbours[word];
        heaviest = std::max(heaviest, weights_[node]);
        order.push_back({node, 0});
      }
      sum += heaviest;
      for (std::size_t i = first; i < order.size(); ++i) order[i].bound = sum;
    }
    return order;
  }

  // Large graphs take more time for a node of the tree: one step for each 1,024 words looked at.
  static std::size_t work_of(const Bits& candidates) {
    std::size_t nodes = 0;
    for (const std::uint64_t word : candidates) nodes += std::popcount(word);
    return nodes * candidates.size() / 1024;
  }

  void expand(Bits candidates, std::int64_t weight) {
    best_.steps += 1 + static_cast<std::int64_t>(work_of(candidates));
    if (weight > best_.weight) {
      best_.weight = weight;
      best_.nodes = nodes_;
    }
    const std::vector<Bounded> order = bound(candidates);
    for (auto next = order.rbegin(); next != order.rend(); ++next) {
      if (weight + next->bound <= best_.weight) return;
      Bits common = candidates;
      const auto neighbours = graph_.neighbours(next->node);
      for (std::size_t word = 0; word < common.size(); ++word) common[word] &= neighbours[word];
      nodes_.push_back(next->node);
      expand(std::move(common), weight + weights_[next->node]);
      nodes_.pop_back();
      candidates[next->node / 64] &= ~(std::uint64_t{1} << next->node % 64);
      if (best_.steps >= most_steps_) return;
    }
  }

  const ConflictGraph& graph_;
  const std::vector<std::int64_t>& weights_;
  std::int64_t most_steps_;
  std::vector<int> nodes_;  // of the clique that grows
  Clique best_;
};

}  // namespace

Clique heaviest_clique(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
                       const std::vector<int>& known, std::int64_t steps) {
  return Search(graph, weights, known, steps).run();
}

}  // namespace slotgraph

#include "core/plan/packing/weighted_colouring.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/random.h"

namespace slotgraph {
namespace {

// Equal weights have equal ranks, heavier ones higher.
std::vector<int> ranks_of(const std::vector<std::int64_t>& weights) {
  std::vector<std::int64_t> distinct = weights;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<int> ranks;
  ranks.reserve(weights.size());
  for (const std::int64_t weight : weights) {
    ranks.push_back(static_cast<int>(std::lower_bound(distinct.begin(), distinct.end(), weight) -
                                     distinct.begin()));
  }
  return ranks;
}

std::vector<std::vector<int>> classes_of(const Colouring& colouring) {
  std::vector<std::vector<int>> classes(colours_of(colouring));
  for (std::size_t node = 0; node < colouring.size(); ++node)
    classes[colouring[node]].push_back(static_cast<int>(node));
  return classes;
}

// Colours the classes one after another, each node with the first free colour. If the classes come
// by falling weight, no colour becomes heavier than before (Culberson, "Iterated greedy graph
// coloring and the difficulty landscape", 1992).
Colouring recolour(const ConflictGraph& graph, const std::vector<std::vector<int>>& classes) {
  const std::size_t words = (static_cast<std::size_t>(graph.nodes()) + 63) / 64;
  std::vector<std::vector<std::uint64_t>> members;  // of each new colour
  Colouring colouring(graph.nodes());
  for (const std::vector<int>& nodes : classes) {
    for (const int node : nodes) {
      const auto neighbours = graph.neighbours(node);
      std::size_t colour = 0;
      const auto is_free = [&] {
        for (std::size_t word = 0; word < words; ++word)
          if ((members[colour][word] & neighbours[word]) != 0) return false;
        return true;
      };
      while (colour < members.size() && !is_free()) ++colour;
      if (colour == members.size()) members.emplace_back(words);
      members[colour][node / 64] |= std::uint64_t{1} << node % 64;
      colouring[node] = static_cast<int>(colour);
    }
  }
  return colouring;
}

class Improver {
 public:
  Improver(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
           std::int64_t lower_bound)
      : graph_(graph), weights_(weights), lower_bound_(lower_bound) {}

  void offer(Colouring colouring) {
    const std::int64_t cost = cost_of(colouring, weights_);
    if (!best_.colours.empty() && cost >= best_.cost) return;
    best_.colours = std::move(colouring);
    best_.cost = cost;
  }

  bool is_done() const { return best_.cost <= lower_bound_; }

  // Rounds of recolouring from the given start; classes of equal weight in a new order each time.
  void iterate(Colouring colouring, std::int64_t rounds, std::int64_t steps) {
    std::uint64_t state = 0;
    for (std::int64_t round = 0; round < rounds && best_.steps < steps && !is_done(); ++round) {
      auto classes = classes_of(colouring);
      struct Key {
        std::int64_t weight;
        std::int64_t tie;
        std::size_t index;
      };
      std::vector<Key> keys;
      for (std::size_t i = 0; i < classes.size(); ++i) {
        std::int64_t weight = 0;
        for (const int node : classes[i]) weight = std::max(weight, weights_[node]);
        const std::int64_t size = static_cast<std::int64_t>(classes[i].size());
        const std::int64_t position = static_cast<std::int64_t>(i);
        // Reversed, largest first, and at random, in turn.
        const std::int64_t tie = round % 3 == 0 ? position
                                 : round % 3 == 1
                                     ? size
                                     : static_cast<std::int64_t>(split_mix64(state) >> 1);
        keys.push_back({weight, tie, i});
      }
      std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
        return std::tie(b.weight, b.tie, a.index) < std::tie(a.weight, a.tie, b.index);
      });
      std::vector<std::vector<int>> ordered;
      ordered.reserve(keys.size());
      for (const Key& key : keys) ordered.push_back(std::move(classes[key.index]));
      colouring = recolour(graph_, ordered);
      offer(colouring);
      best_.steps += graph_.nodes() * (1 + std::int64_t{graph_.nodes()} / 256);
    }
  }

  WeightedColouring& best() { return best_; }

 private:
  const ConflictGraph& graph_;
  const std::vector<std::int64_t>& weights_;
  std::int64_t lower_bound_;
  WeightedColouring best_;
};

// Depth first over the nodes by falling weight, then saturation: a node takes each colour that is
// free, or a new one, which costs its weight. A node is a step.
class Exact {
 public:
  Exact(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
        std::int64_t lower_bound, std::int64_t steps, WeightedColouring& best)
      : graph_(graph),
        weights_(weights),
        lower_bound_(lower_bound),
        most_steps_(best.steps + steps),
        best_(best),
        colours_(graph.nodes(), -1),
        taken_(static_cast<std::size_t>(graph.nodes()) * graph.nodes()),
        saturation_(graph.nodes()) {
    for (int node = 0; node < graph.nodes(); ++node) degree_.push_back(graph.degree(node));
    for (int node = 0; node < graph.nodes(); ++node)
      has_twin_before_.push_back(node > 0 && are_twins(node - 1, node) ? 1 : 0);
  }

  void run() {
    place(0, 0, 0);
    if (best_.steps < most_steps_) best_.optimal = true;
  }

 private:
  // Nodes that can swap their colours in any colouring.
  bool are_twins(int a, int b) const {
    if (weights_[a] != weights_[b] || degree_[a] != degree_[b] || !graph_.connected(a, b))
      return false;
    for (int node = 0; node < graph_.nodes(); ++node) {
      if (node != a && node != b && graph_.connected(a, node) != graph_.connected(b, node))
        return false;
    }
    return true;
  }

  bool ended() const { return best_.steps >= most_steps_ || best_.cost <= lower_bound_; }

  int next_node() const {
    int best = -1;
    const auto key = [this](int node) {
      return std::tuple(weights_[node], saturation_[node], degree_[node]);
    };
    for (int node = 0; node < graph_.nodes(); ++node) {
      if (colours_[node] < 0 && (best < 0 || key(node) > key(best))) best = node;
    }
    return best;
  }

  int& taken(int node, int colour) {
    return taken_[static_cast<std::size_t>(node) * graph_.nodes() + colour];
  }

  void set(int node, int colour) {
    colours_[node] = colour;
    for_each_bit(graph_.neighbours(node), [&](int other) {
      if (taken(other, colour)++ == 0) ++saturation_[other];
    });
  }

  void unset(int node) {
    const int colour = std::exchange(colours_[node], -1);
    for_each_bit(graph_.neighbours(node), [&](int other) {
      if (--taken(other, colour) == 0) --saturation_[other];
    });
  }

  void place(int placed, int used, std::int64_t cost) {
    if (cost >= best_.cost || ended()) return;
    if (placed == graph_.nodes()) {
      best_.colours = colours_;
      best_.cost = cost;
      return;
    }
    ++best_.steps;
    const int node = next_node();
    const int first = has_twin_before_[node] ? colours_[node - 1] + 1 : 0;
    for (int colour = first; colour <= used && !ended(); ++colour) {
      if (taken(node, colour) > 0) continue;
      const bool is_new = colour == used;
      set(node, colour);
      place(placed + 1, used + is_new, cost + (is_new ? weights_[node] : 0));
      unset(node);
    }
  }

  const ConflictGraph& graph_;
  const std::vector<std::int64_t>& weights_;
  std::int64_t lower_bound_;
  std::int64_t most_steps_;
  WeightedColouring& best_;
  std::vector<int> degree_;
  std::vector<char> has_twin_before_;
  Colouring colours_;
  std::vector<int> taken_;  // by how many neighbours, of each node and colour
  std::vector<int> saturation_;
};

// Colour 0 is a heaviest one, and so on; among equals the one with the smallest node.
void number_by_weight(WeightedColouring& colouring, const std::vector<std::int64_t>& weights) {
  const auto classes = classes_of(colouring.colours);
  std::vector<std::int64_t> heaviest(classes.size());
  for (std::size_t i = 0; i < classes.size(); ++i)
    for (const int node : classes[i]) heaviest[i] = std::max(heaviest[i], weights[node]);
  std::vector<int> order(classes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return heaviest[a] != heaviest[b] ? heaviest[a] > heaviest[b]
                                      : classes[a].front() < classes[b].front();
  });
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const int node : classes[order[i]]) colouring.colours[node] = static_cast<int>(i);
}

constexpr int kMostExactNodes = 512;          // the search keeps their square
constexpr int kRounds = 300;                  // of recolouring, from each start
constexpr std::int64_t kMostCells = 1 << 22;  // nodes times colours of a palette search: 48 MiB

}  // namespace

std::int64_t cost_of(const Colouring& colouring, const std::vector<std::int64_t>& weights) {
  std::vector<std::int64_t> heaviest(colours_of(colouring));
  for (std::size_t node = 0; node < colouring.size(); ++node)
    heaviest[colouring[node]] = std::max(heaviest[colouring[node]], weights[node]);
  return std::accumulate(heaviest.begin(), heaviest.end(), std::int64_t{0});
}

WeightedColouring colour(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
                         const Palette& fewest, std::int64_t steps) {
  const std::int64_t lower_bound = std::accumulate(fewest.begin(), fewest.end(), std::int64_t{0});
  Improver improver(graph, weights, lower_bound);
  const Colouring plain = dsatur(graph), by_weight = dsatur(graph, ranks_of(weights));
  improver.offer(plain);
  improver.offer(by_weight);
  improver.iterate(by_weight, kRounds, steps);
  improver.iterate(plain, kRounds, steps);
  WeightedColouring& best = improver.best();
  std::int64_t left = steps - best.steps;
  if (!improver.is_done() && graph.nodes() <= kMostExactNodes && left > 0) {
    Exact(graph, weights, lower_bound, left / 2, best).run();
    left = steps - best.steps;
  }
  const std::int64_t cells = std::int64_t{graph.nodes()} * colours_of(best.colours);
  if (!improver.is_done() && !best.optimal && left > 0 && cells <= kMostCells) {
    const std::int64_t before = left;
    improver.offer(search_palettes(graph, weights, fewest, best.colours, left));
    best.steps += before - left;
  }
  best.optimal = best.optimal || best.cost <= lower_bound;
  number_by_weight(best, weights);
  return std::move(best);
}

}  // namespace slotgraph

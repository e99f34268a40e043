#include "core/plan/packing/palette_search.h"

#include <algorithm>
#include <numeric>

#include "core/random.h"

namespace slotgraph {
namespace {

constexpr int kMovesOfOneTry = 2000;  // until a palette is given up

class PartialSearch {
 public:
  PartialSearch(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
                const Palette& palette, Colouring start)
      : graph_(graph),
        weights_(weights),
        palette_(palette),
        colours_(std::move(start)),
        taken_(static_cast<std::size_t>(graph.nodes()) * palette.size()),
        tabu_(taken_.size()) {
    for (int node = 0; node < graph.nodes(); ++node) {
      const int colour = colours_[node];
      if (colour < 0) {
        missing_.push_back(node);
      } else {
        count(node, colour, 1);
      }
    }
    best_ = colours_;
    fewest_missing_ = missing_.size();
  }

  Colouring run(std::int64_t& steps, std::int64_t most_moves) {
    for (std::int64_t move = 1; move <= most_moves && steps > 0 && fewest_missing_ > 0; ++move) {
      // One step for each 4,096 places looked at, so that large graphs take no longer.
      steps -= 1 + static_cast<std::int64_t>(missing_.size() * palette_.size() / 4096);
      move_one(move);
      if (missing_.size() >= fewest_missing_) continue;
      fewest_missing_ = missing_.size();
      best_ = colours_;
    }
    return best_;
  }

 private:
  std::size_t cell(int node, std::size_t colour) const {
    return static_cast<std::size_t>(node) * palette_.size() + colour;
  }
  void count(int node, int colour, int change) {
    for_each_bit(graph_.neighbours(node),
                 [&](int other) { taken_[cell(other, colour)] += change; });
  }

  // The move that puts the fewest nodes out; among equals one by chance. None while all are barred.
  void move_one(std::int64_t now) {
    int fewest = graph_.nodes() + 1;
    std::size_t best_index = 0, best_colour = 0;
    std::uint64_t ties = 0;
    for (std::size_t i = 0; i < missing_.size(); ++i) {
      const int node = missing_[i];
      for (std::size_t colour = 0; colour < palette_.size(); ++colour) {
        if (palette_[colour] < weights_[node]) continue;
        const int out = taken_[cell(node, colour)];
        if (out > fewest || (tabu_[cell(node, colour)] > now && out > 0)) continue;
        if (out < fewest) ties = 0;
        fewest = out;
        if (split_mix64(random_) % ++ties != 0) continue;
        best_index = i;
        best_colour = colour;
      }
    }
    if (ties == 0) return;
    const int node = missing_[best_index];
    missing_.erase(missing_.begin() + static_cast<std::ptrdiff_t>(best_index));
    for_each_bit(graph_.neighbours(node), [&](int other) {
      if (colours_[other] != static_cast<int>(best_colour)) return;
      put_out(other, now);
    });
    colours_[node] = static_cast<int>(best_colour);
    count(node, colours_[node], 1);
  }

  void put_out(int node, std::int64_t now) {
    const int colour = colours_[node];
    count(node, colour, -1);
    colours_[node] = -1;
    missing_.push_back(node);
    tabu_[cell(node, colour)] =
        now + 10 + static_cast<std::int64_t>(split_mix64(random_) % 10 + missing_.size());
  }

  const ConflictGraph& graph_;
  const std::vector<std::int64_t>& weights_;
  const Palette& palette_;
  Colouring colours_;
  std::vector<int> taken_;          // by how many neighbours, of each node and colour
  std::vector<std::int64_t> tabu_;  // move until which a node must not come back to a colour
  std::vector<int> missing_;        // nodes without colour
  std::uint64_t random_ = 0;
  Colouring best_;
  std::size_t fewest_missing_ = 0;
};

std::int64_t cost_of(const Palette& palette) {
  return std::accumulate(palette.begin(), palette.end(), std::int64_t{0});
}

Palette palette_of(const Colouring& colouring, const std::vector<std::int64_t>& weights) {
  Palette palette(colours_of(colouring));
  for (std::size_t node = 0; node < colouring.size(); ++node)
    palette[colouring[node]] = std::max(palette[colouring[node]], weights[node]);
  return palette;
}

bool is_whole(const Colouring& colouring) {
  return std::find(colouring.begin(), colouring.end(), -1) == colouring.end();
}

// Nodes that their colour does not hold any more, and those of a colour that is gone, get none.
Colouring fitted(Colouring colouring, const std::vector<std::int64_t>& weights,
                 const Palette& palette) {
  for (std::size_t node = 0; node < colouring.size(); ++node) {
    int& colour = colouring[node];
    if (colour >= static_cast<int>(palette.size()) ||
        (colour >= 0 && palette[colour] < weights[node]))
      colour = -1;
  }
  return colouring;
}

class PaletteSearch {
 public:
  PaletteSearch(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
                const Colouring& best, std::int64_t& steps)
      : graph_(graph), weights_(weights), best_(best), steps_(steps) {
    cost_ = cost_of(palette_of(best, weights));
  }

  // Grows the palette by what the heaviest node without a colour lacks.
  void climb(Palette palette) {
    Colouring colouring(graph_.nodes(), -1);
    while (steps_ > 0 && cost_of(palette) < cost_) {
      colouring = colour_with_palette(graph_, weights_, palette, std::move(colouring), steps_,
                                      kMovesOfOneTry);
      if (is_whole(colouring)) {
        accept(colouring);
        return;
      }
      std::int64_t heaviest = 0;
      for (std::size_t node = 0; node < colouring.size(); ++node)
        if (colouring[node] < 0) heaviest = std::max(heaviest, weights_[node]);
      // The largest colour that is too small for it costs the least to enlarge.
      const auto largest_below = [&] {
        auto best = palette.end();
        for (auto each = palette.begin(); each != palette.end(); ++each)
          if (*each < heaviest && (best == palette.end() || *each > *best)) best = each;
        return best;
      }();
      if (largest_below == palette.end()) {
        palette.push_back(heaviest);
      } else {
        *largest_below = heaviest;
      }
    }
  }

  // Takes a colour away or makes it as large as the next smaller node, as long as that works.
  void trim() {
    for (bool improved = true; improved && steps_ > 0;) {
      improved = false;
      const Palette palette = palette_of(best_, weights_);
      for (std::size_t colour = 0; colour < palette.size() && steps_ > 0 && !improved; ++colour)
        improved = try_without(palette, colour) || try_smaller(palette, colour);
    }
  }

  Colouring take() { return std::move(best_); }

 private:
  void accept(const Colouring& colouring) {
    const std::int64_t cost = cost_of(palette_of(colouring, weights_));
    if (cost >= cost_) return;
    cost_ = cost;
    best_ = colouring;
  }

  bool try_palette(const Palette& palette, const Colouring& start) {
    const Colouring found =
        colour_with_palette(graph_, weights_, palette, start, steps_, kMovesOfOneTry);
    if (!is_whole(found)) return false;
    accept(found);
    return true;
  }

  bool try_without(Palette palette, std::size_t colour) {
    Colouring start = best_;
    for (int& each : start) {
      if (each == static_cast<int>(colour)) each = -1;
      if (each > static_cast<int>(colour)) --each;
    }
    palette.erase(palette.begin() + static_cast<std::ptrdiff_t>(colour));
    return try_palette(palette, start);
  }

  bool try_smaller(Palette palette, std::size_t colour) {
    std::int64_t smaller = 0;
    for (const std::int64_t weight : weights_)
      if (weight < palette[colour]) smaller = std::max(smaller, weight);
    if (smaller == 0) return false;
    palette[colour] = smaller;
    return try_palette(palette, fitted(best_, weights_, palette));
  }

  const ConflictGraph& graph_;
  const std::vector<std::int64_t>& weights_;
  Colouring best_;
  std::int64_t& steps_;
  std::int64_t cost_ = 0;
};

}  // namespace

Colouring colour_with_palette(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
                              const Palette& palette, Colouring start, std::int64_t& steps,
                              std::int64_t most_moves) {
  return PartialSearch(graph, weights, palette, std::move(start)).run(steps, most_moves);
}

Colouring search_palettes(const ConflictGraph& graph, const std::vector<std::int64_t>& weights,
                          const Palette& fewest, const Colouring& best, std::int64_t& steps) {
  PaletteSearch search(graph, weights, best, steps);
  search.climb(fewest);
  search.trim();
  return search.take();
}

}  // namespace slotgraph

#include "fuzz/shrink/shrink.h"

#include <algorithm>
#include <optional>

namespace slotgraph::fuzz {
namespace {

// The first of the reductions that shows the signature; `runs` counts all that were run.
std::optional<Reduction> first_failing(const std::vector<Reduction>& all,
                                       const std::string& signature, const Judge& judge,
                                       const ShrinkOptions& options, int& runs) {
  const auto batch = static_cast<std::size_t>(options.at_once);
  for (std::size_t begin = 0; begin < all.size(); begin += batch) {
    if (runs >= options.budget || options.stop()) return std::nullopt;
    const auto left = static_cast<std::size_t>(options.budget - runs);
    const std::size_t end = std::min({begin + batch, begin + left, all.size()});
    std::vector<Experiment> experiments;
    for (std::size_t i = begin; i < end; ++i) experiments.push_back(all[i].experiment);
    const std::vector<std::string> found = judge(experiments);
    runs += static_cast<int>(experiments.size());
    for (std::size_t i = begin; i < end; ++i)
      if (found[i - begin] == signature) return all[i];
  }
  return std::nullopt;
}

}  // namespace

Shrunk shrink(const Experiment& experiment, const std::string& signature, const Judge& judge,
              const ShrinkOptions& options) {
  Shrunk shrunk{experiment, 0, 0, false};
  for (;;) {
    const auto accepted =
        first_failing(reductions(shrunk.experiment), signature, judge, options, shrunk.runs);
    if (!accepted) {
      shrunk.canonical = shrunk.runs < options.budget && !options.stop();
      return shrunk;
    }
    shrunk.experiment = accepted->experiment;
    ++shrunk.steps;
    if (options.accepted) options.accepted(*accepted, shrunk.runs);
  }
}

}  // namespace slotgraph::fuzz

#include "fuzz/execute/layout_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/digest.h"

namespace slotgraph::fuzz {
namespace {

// Touching or overlapping regions as one.
std::vector<Region> merged(std::vector<Region> regions) {
  std::sort(regions.begin(), regions.end(),
            [](const Region& a, const Region& b) { return a.begin < b.begin; });
  std::vector<Region> result;
  for (const Region& region : regions) {
    if (!result.empty() && region.begin <= result.back().end()) {
      const std::byte* const end = std::max(result.back().end(), region.end());
      result.back().bytes = static_cast<std::size_t>(end - result.back().begin);
    } else {
      result.push_back(region);
    }
  }
  return result;
}

}  // namespace

std::string layout_digest(const CallableSet& set, const Plan& plan) {
  std::vector<std::vector<Region>> owned;  // of each branch; flight, then gradient
  std::vector<Region> all;
  for (std::size_t branch = 0; branch < plan.slots.size(); ++branch) {
    const Ownership ownership = set.ownership(static_cast<int>(branch));
    for (const auto* const regions : {&ownership.flight, &ownership.gradient}) {
      owned.push_back(*regions);
      all.insert(all.end(), regions->begin(), regions->end());
    }
  }
  const std::vector<Region> arenas = merged(all);
  std::vector<const Region*> order;  // of first appearance
  std::string text;
  for (const auto& regions : owned) {
    for (const Region& region : regions) {
      const auto arena = std::find_if(arenas.begin(), arenas.end(),
                                      [&](const Region& each) { return each.contains(region); });
      const auto known = std::find(order.begin(), order.end(), &*arena);
      const auto number = known - order.begin();
      if (known == order.end()) order.push_back(&*arena);
      text += fmt::format("{}+{}:{} ", number, region.begin - arena->begin, region.bytes);
    }
    text += "\n";
  }
  return sha256(text);
}

}  // namespace slotgraph::fuzz

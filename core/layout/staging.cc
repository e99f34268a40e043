#include "core/layout/staging.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "core/error.h"

namespace slotgraph {
namespace {

bool holds(const std::vector<int>& storages, int storage) {
  return std::find(storages.begin(), storages.end(), storage) != storages.end();
}

// What the members of a group have in common besides the storage.
auto key_of(const StagedBranch& branch) {
  const TensorSpec& t = branch.leading;
  return std::tuple(branch.colour, t.offset, t.sizes, t.strides, t.item_bytes, t.dtype, t.device,
                    t.requires_grad);
}

// Why one augmenting path for each group is right. Groups and storages are the two sides of a
// bipartite graph, and a path may move groups to other storages but leaves none without. So the
// groups that a fresh buffer cannot serve, which come first, are never given up for later ones. If
// no path begins at such a group, then no assignment serves it together with those before it, and
// to refuse is right. At the end no path is left, so as many groups as possible use storages of
// samples. To take the first sample's storage for each group would be wrong: two colours may have
// one sample, and both would live in it.
class Matching {
 public:
  explicit Matching(const std::vector<StagedBranch>& branches) : branches_(branches) {
    std::map<decltype(key_of(branches[0])), int> numbers;
    for (int i = 0; i < static_cast<int>(branches.size()); ++i) {
      const auto [entry, is_new] =
          numbers.emplace(key_of(branches[i]), static_cast<int>(plan_.groups.size()));
      if (is_new) plan_.groups.emplace_back();
      plan_.groups[entry->second].members.push_back(i);
      plan_.group_of_branch.push_back(entry->second);
      for (const int storage : branches[i].other_inputs)
        colours_of_other_[storage].insert(branches[i].colour);
    }
  }

  StagingPlan run() {
    for (const StagingGroup& group : plan_.groups) candidates_.push_back(candidates_of(group));
    std::vector<int> order(plan_.groups.size());
    std::iota(order.begin(), order.end(), 0);
    // Groups that need a sample's storage come first, then those with the least choice.
    std::stable_sort(order.begin(), order.end(), [this](int a, int b) {
      return std::pair(fresh_keeps_aliases(plan_.groups[a]), candidates_[a].size()) <
             std::pair(fresh_keeps_aliases(plan_.groups[b]), candidates_[b].size());
    });
    for (const int group : order) {
      std::set<int> visited;
      if (augment(group, visited)) continue;
      if (!fresh_keeps_aliases(plan_.groups[group])) refuse_alias(group);
    }
    for (const auto& [storage, group] : group_of_storage_) plan_.groups[group].storage = storage;
    for (StagingGroup& group : plan_.groups) {
      if (!group.storage) group.bytes = range_of(branches_[group.members.front()].leading).end;
    }
    return std::move(plan_);
  }

 private:
  // Storages of the members' own leading inputs that can serve all of them.
  std::vector<int> candidates_of(const StagingGroup& group) const {
    std::vector<int> candidates;
    for (const int member : group.members) {
      const int storage = branches_[member].leading.storage;
      if (!holds(candidates, storage) && can_serve(storage, group)) candidates.push_back(storage);
    }
    return candidates;
  }

  bool can_serve(int storage, const StagingGroup& group) const {
    const int colour = branches_[group.members.front()].colour;
    const auto others = colours_of_other_.find(storage);
    // A branch of another colour may be live, and its input copied, while this group is.
    if (others != colours_of_other_.end() &&
        (others->second.size() > 1 || !others->second.contains(colour)))
      return false;
    return std::all_of(group.members.begin(), group.members.end(), [&](int member) {
      const StagedBranch& branch = branches_[member];
      return std::all_of(branch.other_inputs.begin(), branch.other_inputs.end(), [&](int other) {
        return (other == branch.leading.storage) == (other == storage);
      });
    });
  }

  bool fresh_keeps_aliases(const StagingGroup& group) const {
    return std::none_of(group.members.begin(), group.members.end(), [this](int member) {
      return holds(branches_[member].other_inputs, branches_[member].leading.storage);
    });
  }

  // Finds a storage for the group, moving other groups to other storages if need be.
  bool augment(int group, std::set<int>& visited) {
    for (const int storage : candidates_[group]) {
      if (!visited.insert(storage).second) continue;
      const auto holder = group_of_storage_.find(storage);
      if (holder != group_of_storage_.end() && !augment(holder->second, visited)) continue;
      group_of_storage_[storage] = group;
      return true;
    }
    return false;
  }

  [[noreturn]] void refuse_alias(int group) const {
    throw Error(Error::kContract,
                {"L01", fmt::format("leading input of branch {}", plan_.groups[group].members[0]),
                 "an alias of another input", "one buffer for it in all branches of its colour",
                 "pass the tensor once, or samples that share it alike"});
  }

  const std::vector<StagedBranch>& branches_;
  StagingPlan plan_;
  std::map<int, std::set<int>> colours_of_other_;  // by storage
  std::vector<std::vector<int>> candidates_;       // of each group
  std::map<int, int> group_of_storage_;
};

}  // namespace

StagingPlan plan_staging(const std::vector<StagedBranch>& branches) {
  std::set<int> module_state;
  for (const StagedBranch& branch : branches)
    module_state.insert(branch.module_state.begin(), branch.module_state.end());
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const auto& others = branches[i].other_inputs;
    const bool leads = module_state.contains(branches[i].leading.storage);
    if (!leads && std::none_of(others.begin(), others.end(),
                               [&](int storage) { return module_state.contains(storage); }))
      continue;
    throw Error(Error::kContract,
                {"C21", fmt::format("{} input of branch {}", leads ? "leading" : "another", i),
                 "an alias of a parameter or buffer", "memory of its own", "pass a copy"});
  }
  if (branches.empty()) return {};
  return Matching(branches).run();
}

}  // namespace slotgraph

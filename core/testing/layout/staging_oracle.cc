#include "core/testing/layout/staging_oracle.h"

#include <algorithm>
#include <set>

namespace slotgraph::testing {
namespace {

bool staged_together(const BranchTensors& a, const BranchTensors& b) {
  TensorSpec leading = a.inputs[0];
  leading.storage = b.inputs[0].storage;
  return a.colour == b.colour && leading == b.inputs[0];
}

// Storages of all that the branch touches beside its leading input.
std::set<int> others(const BranchTensors& branch) {
  std::set<int> storages(branch.module_state.begin(), branch.module_state.end());
  for (std::size_t i = 1; i < branch.inputs.size(); ++i) storages.insert(branch.inputs[i].storage);
  return storages;
}

bool keeps_aliases(const BranchTensors& branch, int storage) {
  return std::ranges::all_of(others(branch), [&](int other) {
    return (other == branch.inputs[0].storage) == (other == storage);
  });
}

bool is_other_input(const BranchTensors& branch, int storage) {
  return std::any_of(branch.inputs.begin() + 1, branch.inputs.end(),
                     [&](const TensorSpec& input) { return input.storage == storage; });
}

bool can_serve(const std::vector<BranchTensors>& branches, const Members& members, int storage) {
  const int colour = branches[members[0]].colour;
  return std::ranges::all_of(
             members, [&](int member) { return keeps_aliases(branches[member], storage); }) &&
         std::ranges::none_of(branches, [&](const BranchTensors& branch) {
           return branch.colour != colour && is_other_input(branch, storage);
         });
}

struct Choices {
  std::vector<std::vector<int>> storages;  // by group
  std::vector<bool> may_be_fresh;
};

std::optional<int> most(const Choices& choices, std::size_t group, std::set<int>& used) {
  if (group == choices.storages.size()) return 0;
  std::optional<int> best;
  if (choices.may_be_fresh[group]) best = most(choices, group + 1, used);
  for (int storage : choices.storages[group]) {
    if (!used.insert(storage).second) continue;
    if (const auto rest = most(choices, group + 1, used)) best = std::max(best, {*rest + 1});
    used.erase(storage);
  }
  return best;
}

}  // namespace

std::vector<Members> staging_groups(const std::vector<BranchTensors>& branches) {
  std::vector<Members> groups;
  for (int i = 0; i < static_cast<int>(branches.size()); ++i) {
    const auto group = std::ranges::find_if(groups, [&](const Members& members) {
      return staged_together(branches[members[0]], branches[i]);
    });
    if (group == groups.end())
      groups.push_back({i});
    else
      group->push_back(i);
  }
  return groups;
}

std::vector<int> storages_for(const std::vector<BranchTensors>& branches, const Members& members) {
  std::set<int> storages;
  for (int member : members) {
    const int storage = branches[member].inputs[0].storage;
    if (can_serve(branches, members, storage)) storages.insert(storage);
  }
  return {storages.begin(), storages.end()};
}

bool may_be_fresh(const std::vector<BranchTensors>& branches, const Members& members) {
  return std::ranges::none_of(members, [&](int member) {
    return others(branches[member]).contains(branches[member].inputs[0].storage);
  });
}

std::optional<int> most_on_storages(const std::vector<BranchTensors>& branches) {
  Choices choices;
  for (const Members& members : staging_groups(branches)) {
    choices.storages.push_back(storages_for(branches, members));
    choices.may_be_fresh.push_back(may_be_fresh(branches, members));
  }
  std::set<int> used;
  return most(choices, 0, used);
}

}  // namespace slotgraph::testing

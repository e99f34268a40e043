#include "core/testing/layout/layout_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/testing/layout/branch_checker.h"
#include "core/testing/layout/staging_oracle.h"

namespace slotgraph::testing {
namespace {

using Kind = SurfaceTensor::Kind;
using Sizes = std::map<int, std::int64_t>;

std::int64_t size_of(const Sizes& arenas, int id) {
  const auto found = arenas.find(id);
  return found == arenas.end() ? 0 : found->second;
}

// Whole pieces of the tensors, which are all that the needs depend on.
std::int64_t need_of(const BranchFacts& branch) {
  std::int64_t need = 0;
  for (const Piece& piece : branch.pieces) need += pieces_of_256(piece.bytes());
  for (const Cluster& cluster : branch.clusters)
    if (!cluster.home) need += pieces_of_256(cluster.piece.bytes());
  return need;
}

std::int64_t gradient_need_of(const BranchTensors& branch) {
  std::int64_t need = 0;
  for (const SurfaceTensor& gradient : branch.user_gradients)
    if (gradient.kind == Kind::kArena) need += pieces_of_256(hull(gradient.tensor).bytes());
  return need;
}

class Checker {
 public:
  Checker(const std::vector<BranchTensors>& branches, const ArenaLayout& layout)
      : branches_(branches), layout_(layout) {
    for (const BranchTensors& branch : branches)
      facts_.push_back({output_pieces(branch.outputs), saved_clusters(branch)});
  }

  std::vector<std::string> found() {
    if (layout_.branches.size() != branches_.size()) {
      report("shape", "another number of branches");
      return found_;
    }
    check_sizes();
    for (std::size_t i = 0; i < branches_.size(); ++i)
      BranchChecker(branches_[i], facts_[i], layout_.branches[i], static_cast<int>(i), found_)
          .check(size_of(layout_.arenas, branches_[i].colour),
                 size_of(layout_.gradient_arenas, branches_[i].gradient_colour));
    for (std::size_t i = 0; i < branches_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (branches_[i].frame == branches_[j].frame) check_addresses(i, j);
    check_staging();
    return found_;
  }

 private:
  void report(const char* tag, const std::string& text) {
    found_.push_back(fmt::format("{}: {}", tag, text));
  }

  void check_sizes();
  void compare(const Sizes& arenas, const Sizes& needs, const char* what);
  void check_addresses(std::size_t a, std::size_t b);
  void check_output_addresses(std::size_t a, std::size_t b);
  void check_gradient_addresses(std::size_t a, std::size_t b);
  void check_staging();
  void check_group(std::size_t group, const Members& members);
  void check_storage(std::size_t group, const Members& members, int storage);
  void check_fresh(std::size_t group, const Members& members);

  const std::vector<BranchTensors>& branches_;
  std::vector<BranchFacts> facts_;
  const ArenaLayout& layout_;
  std::vector<std::string> found_;
};

void Checker::check_sizes() {
  Sizes saved, gradients;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    auto& bytes = saved[branches_[i].colour];
    bytes = std::max(bytes, need_of(facts_[i]));
    auto& gradient_bytes = gradients[branches_[i].gradient_colour];
    gradient_bytes = std::max(gradient_bytes, gradient_need_of(branches_[i]));
  }
  compare(layout_.arenas, saved, "saved arena");
  compare(layout_.gradient_arenas, gradients, "user gradient arena");
}

void Checker::compare(const Sizes& arenas, const Sizes& needs, const char* what) {
  for (const auto& [id, bytes] : arenas) {
    if (bytes == 0) report("size", fmt::format("{} {} exists without bytes", what, id));
    if (!needs.contains(id)) report("size", fmt::format("{} {} is of no branch", what, id));
  }
  for (const auto& [id, bytes] : needs)
    if (size_of(arenas, id) != bytes)
      report("size",
             fmt::format("{} {} has {} bytes and needs {}", what, id, size_of(arenas, id), bytes));
}

void Checker::check_addresses(std::size_t a, std::size_t b) {
  if (branches_[a].colour == branches_[b].colour) check_output_addresses(a, b);
  if (branches_[a].gradient_colour == branches_[b].gradient_colour) check_gradient_addresses(a, b);
}

// Equal while all storages before have equal sizes, up to the rounding inside a storage.
void Checker::check_output_addresses(std::size_t a, std::size_t b) {
  const std::vector<Piece>& pieces_a = facts_[a].pieces;
  const std::vector<Piece>& pieces_b = facts_[b].pieces;
  const auto base = [&](std::size_t branch, const Piece& piece) {
    const std::size_t output = piece.members[0];
    const auto& offsets = layout_.branches[branch].outputs.offsets;
    const std::int64_t place = output < offsets.size() ? offsets[output].value_or(-1) : -1;
    return place - (branches_[branch].outputs[output].tensor.offset - piece.origin);
  };
  for (std::size_t i = 0; i < std::min(pieces_a.size(), pieces_b.size()); ++i) {
    if (base(a, pieces_a[i]) != base(b, pieces_b[i]))
      report("address",
             fmt::format("output {} of branches {} and {} differs", pieces_a[i].members[0], b, a));
    if (pieces_of_256(pieces_a[i].bytes()) != pieces_of_256(pieces_b[i].bytes())) return;
  }
}

void Checker::check_gradient_addresses(std::size_t a, std::size_t b) {
  const auto& offsets_a = layout_.branches[a].user_gradients.offsets;
  const auto& offsets_b = layout_.branches[b].user_gradients.offsets;
  for (std::size_t i = 0; i < std::min(offsets_a.size(), offsets_b.size()); ++i) {
    if (offsets_a[i] != offsets_b[i])
      report("address", fmt::format("gradient {} of branches {} and {} differs", i, b, a));
    if (pieces_of_256(hull(branches_[a].user_gradients[i].tensor).bytes()) !=
        pieces_of_256(hull(branches_[b].user_gradients[i].tensor).bytes()))
      return;
  }
}

void Checker::check_staging() {
  const std::vector<Members> groups = staging_groups(branches_);
  const StagingPlan& plan = layout_.staging;
  if (plan.groups.size() != groups.size() || plan.group_of_branch.size() != branches_.size()) {
    report("staging", "another number of groups or branches");
    return;
  }
  std::set<int> used;
  int on_storages = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    check_group(i, groups[i]);
    if (const auto storage = plan.groups[i].storage) {
      ++on_storages;
      if (!used.insert(*storage).second)
        report("staging", fmt::format("storage {} serves two groups", *storage));
    }
  }
  const auto most = most_on_storages(branches_);
  if (!most)
    report("staging", "no choice of storages keeps all aliases");
  else if (on_storages != *most)
    report("staging", fmt::format("{} groups on storages instead of {}", on_storages, *most));
}

void Checker::check_group(std::size_t group, const Members& members) {
  if (layout_.staging.groups[group].members != members)
    report("staging", fmt::format("group {} has other members", group));
  for (int member : members)
    if (layout_.staging.group_of_branch[member] != static_cast<int>(group))
      report("staging", fmt::format("branch {} names another group", member));
  if (const auto storage = layout_.staging.groups[group].storage)
    check_storage(group, members, *storage);
  else
    check_fresh(group, members);
}

void Checker::check_storage(std::size_t group, const Members& members, int storage) {
  const std::vector<int> allowed = storages_for(branches_, members);
  if (!std::ranges::count(allowed, storage))
    report("staging", fmt::format("storage {} cannot serve group {}", storage, group));
}

void Checker::check_fresh(std::size_t group, const Members& members) {
  if (!may_be_fresh(branches_, members))
    report("staging", fmt::format("the fresh buffer of group {} breaks an alias", group));
  const std::int64_t need = hull(branches_[members[0]].inputs[0]).end;
  if (layout_.staging.groups[group].bytes != need)
    report("staging", fmt::format("the fresh buffer of group {} has {} bytes and needs {}", group,
                                  layout_.staging.groups[group].bytes, need));
}

}  // namespace

std::vector<std::string> violations(const std::vector<BranchTensors>& branches,
                                    const ArenaLayout& layout) {
  return Checker(branches, layout).found();
}

}  // namespace slotgraph::testing

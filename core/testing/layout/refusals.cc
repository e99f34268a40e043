#include "core/testing/layout/refusals.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/testing/layout/facts.h"
#include "core/testing/layout/staging_oracle.h"

namespace slotgraph::testing {
namespace {

using Kind = SurfaceTensor::Kind;
using Rules = std::set<std::string>;
using Tensors = std::vector<SurfaceTensor>;

// Module state has no storage group, so which of it an output is may differ.
bool share(const SurfaceTensor& a, const SurfaceTensor& b) {
  return a.kind == Kind::kArena && b.kind == Kind::kArena && a.tensor.storage == b.tensor.storage;
}

// Of two branches: whether the same tensors share storages, among the positions where both have
// one in the arena, or among all.
bool one_topology(const Tensors& a, const Tensors& b, bool all) {
  const auto looked_at = [&](std::size_t i) {
    return all || (a[i].kind == Kind::kArena && b[i].kind == Kind::kArena);
  };
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (looked_at(i) && looked_at(j) && share(a[i], a[j]) != share(b[i], b[j])) return false;
  return true;
}

Rules position_rules(const SurfaceTensor& a, const SurfaceTensor& b) {
  if (a.kind != b.kind) {
    const bool none = a.kind == Kind::kNone || b.kind == Kind::kNone;
    const bool state = a.kind == Kind::kModuleState || b.kind == Kind::kModuleState;
    if (none && state) return {"L05", "L06"};
    return {none ? "L05" : "L06"};
  }
  const bool differs = a.tensor.dtype != b.tensor.dtype || a.tensor.device != b.tensor.device ||
                       a.tensor.requires_grad != b.tensor.requires_grad;
  return a.kind == Kind::kArena && differs ? Rules{"L07"} : Rules{};
}

Rules pair_rules(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return {"L03"};
  if (!one_topology(a, b, false)) return {"L04"};
  Rules rules;
  for (std::size_t i = 0; i < a.size() && rules.empty(); ++i) rules = position_rules(a[i], b[i]);
  if (!one_topology(a, b, true)) rules.insert("L04");
  return rules;
}

Rules frame_rules(const std::vector<BranchTensors>& branches, Tensors BranchTensors::*surface) {
  std::set<std::pair<int, int>> seen;
  for (const BranchTensors& branch : branches)
    if (!seen.emplace(branch.frame, branch.branch).second) return {"L02"};
  std::map<int, const BranchTensors*> first;
  std::map<int, Rules> broken;
  for (const BranchTensors& branch : branches) {
    const BranchTensors* reference = first.emplace(branch.frame, &branch).first->second;
    broken[branch.frame].merge(pair_rules(reference->*surface, branch.*surface));
  }
  for (const BranchTensors& branch : branches)  // frames in order of appearance
    if (!broken[branch.frame].empty()) return broken[branch.frame];
  return {};
}

Rules staging_rules(const std::vector<BranchTensors>& branches) {
  std::set<int> state;
  for (const BranchTensors& branch : branches)
    state.insert(branch.module_state.begin(), branch.module_state.end());
  for (const BranchTensors& branch : branches)
    for (const TensorSpec& input : branch.inputs)
      if (state.contains(input.storage)) return {"C21"};
  return most_on_storages(branches) ? Rules{} : Rules{"L01"};
}

// The origin of the arena piece that an output lies in.
std::int64_t origin_of(int output, const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces)
    if (std::ranges::count(piece.members, output) > 0) return piece.origin;
  return 0;
}

Rules saved_rules(const BranchTensors& branch) {
  Rules rules;
  const std::vector<Piece> pieces = output_pieces(branch.outputs);
  for (const Cluster& cluster : saved_clusters(branch)) {
    if (!cluster.home || !cluster.home->is_output) continue;
    if (branch.outputs[cluster.home->index].kind != Kind::kArena) {
      rules.insert("L09");
      continue;
    }
    for (int save : cluster.piece.members) {
      const TensorSpec& tensor = branch.saved[save].tensor;
      if ((tensor.offset - origin_of(cluster.home->index, pieces)) % tensor.item_bytes != 0)
        rules.insert("L08");
    }
  }
  return rules;
}

}  // namespace

std::set<std::string> refusals(const std::vector<BranchTensors>& branches) {
  if (std::ranges::any_of(branches, [](const BranchTensors& b) { return b.inputs.empty(); }))
    return {"C25"};
  Rules rules = frame_rules(branches, &BranchTensors::outputs);
  if (rules.empty()) rules = frame_rules(branches, &BranchTensors::user_gradients);
  if (rules.empty()) rules = staging_rules(branches);
  for (const BranchTensors& branch : branches)
    if (rules.empty()) rules = saved_rules(branch);
  return rules;
}

}  // namespace slotgraph::testing

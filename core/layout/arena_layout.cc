#include "core/layout/arena_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace slotgraph {
namespace {

std::vector<Surface> surfaces_of(const std::vector<BranchTensors>& branches,
                                 std::vector<SurfaceTensor> BranchTensors::*tensors) {
  std::vector<Surface> surfaces;
  surfaces.reserve(branches.size());
  for (const BranchTensors& each : branches)
    surfaces.push_back({each.frame, each.branch, each.*tensors});
  return surfaces;
}

std::vector<StagedBranch> staged(const std::vector<BranchTensors>& branches) {
  std::vector<StagedBranch> result;
  for (const BranchTensors& each : branches) {
    result.push_back({each.colour, each.inputs.front(), {}, each.module_state});
    for (std::size_t i = 1; i < each.inputs.size(); ++i)
      result.back().other_inputs.push_back(each.inputs[i].storage);
  }
  return result;
}

std::vector<Boundary> boundaries_of(const BranchTensors& branch) {
  std::vector<Boundary> boundaries;
  boundaries.reserve(branch.inputs.size() + branch.outputs.size());
  for (int i = 0; i < static_cast<int>(branch.inputs.size()); ++i) {
    boundaries.push_back({Boundary::Kind::kInput, i, branch.inputs[i], branch.input_versions[i]});
  }
  for (int i = 0; i < static_cast<int>(branch.outputs.size()); ++i) {
    if (branch.outputs[i].kind == SurfaceTensor::Kind::kNone) continue;
    boundaries.push_back(
        {Boundary::Kind::kOutput, i, branch.outputs[i].tensor, branch.output_versions[i]});
  }
  return boundaries;
}

void raise(std::map<int, std::int64_t>& arenas, int arena, std::int64_t need) {
  if (need == 0) return;
  std::int64_t& bytes = arenas[arena];
  bytes = std::max(bytes, need);
}

}  // namespace

// Why branches are laid out one by one, each from byte 0 of its arena: frames of one colour are
// never in flight together, and a frame is in flight in one variant at most, so no two branches of
// an arena need it at the same time. It has to hold the largest of them, not their sum, and they
// need not agree on places. Only the surfaces of one family must agree, which callers see; that is
// checked before anything is laid out. In a branch outputs come first, and what is saved follows. A
// saved tensor that an output or the leading input covers, and that the forward does not write
// afterwards, lies there already and costs no bytes.

ArenaLayout lay_out(const std::vector<BranchTensors>& branches) {
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (!branches[i].inputs.empty()) continue;
    throw Error(Error::kContract,
                {"C25", fmt::format("branch {}", i), "no input", "a leading tensor", "pass one"});
  }
  check_frames(surfaces_of(branches, &BranchTensors::outputs));
  check_frames(surfaces_of(branches, &BranchTensors::user_gradients));
  ArenaLayout layout;
  layout.staging = plan_staging(staged(branches));
  for (const BranchTensors& branch : branches) {
    BranchLayout each;
    each.outputs = lay_out_outputs(branch.outputs);
    each.saved = lay_out_saved(branch.saved, boundaries_of(branch), each.outputs);
    each.user_gradients = lay_out_gradients(branch.user_gradients);
    raise(layout.arenas, branch.colour, each.need());
    raise(layout.gradient_arenas, branch.gradient_colour, each.user_gradients.bytes);
    layout.branches.push_back(std::move(each));
  }
  return layout;
}

}  // namespace slotgraph

// lay_out() against its oracle: random branches, layouts broken on purpose, the sizes of the
// reference's table.
#include "core/testing/layout/layout_checker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/testing/layout/random_branches.h"
#include "core/testing/layout/refusals.h"
#include "core/testing/layout/staging_oracle.h"

namespace slotgraph::testing {
namespace {

using Kind = SurfaceTensor::Kind;
using Region = SavedPlace::Region;

constexpr std::uint64_t kSeeds = 100'000;

// The layout, or the rule that refuses it.
struct Outcome {
  std::optional<ArenaLayout> layout;
  std::string rule;
};

Outcome laid_out(const std::vector<BranchTensors>& branches) {
  try {
    return {lay_out(branches), ""};
  } catch (const Error& error) {
    return {std::nullopt, error.rule()};
  }
}

using Counts = std::map<std::string, int>;

void count_saved(const BranchLayout& layout, Counts& counts) {
  std::map<int, int> members;
  for (const auto& place : layout.saved.places) {
    if (!place) continue;
    ++members[place->component];
    ++counts[!place->is_boundary                 ? "laid out: save in the spill"
             : place->region == Region::kStaging ? "laid out: save in the leading input"
                                                 : "laid out: save in an output"];
  }
  for (const auto& [component, saves] : members)
    ++counts[saves == 1 ? "laid out: cluster of one" : "laid out: cluster of more"];
}

// On how many sample storages the groups would be if each took the first free one that can serve.
int first_come(const std::vector<BranchTensors>& branches) {
  std::set<int> used;
  for (const Members& members : staging_groups(branches))
    for (int storage : storages_for(branches, members))
      if (used.insert(storage).second) break;
  return static_cast<int>(used.size());
}

void count_branches(const std::vector<BranchTensors>& branches, Counts& counts) {
  ++counts[fmt::format("branches: {}", branches.size())];
  std::map<std::pair<int, int>, int> alike;
  for (const BranchTensors& branch : branches) ++alike[{branch.frame, branch.colour}];
  for (const auto& [key, number] : alike)
    if (number > 1) ++counts["branches of one frame and colour"];
}

void count_layout(const std::vector<BranchTensors>& branches, const ArenaLayout& layout,
                  Counts& counts) {
  ++counts["laid out"];
  for (const BranchLayout& branch : layout.branches) count_saved(branch, counts);
  for (const StagingGroup& group : layout.staging.groups) {
    ++counts[group.storage ? "staged on a sample" : "staged in a fresh buffer"];
    if (group.members.size() > 1) ++counts["staged for more than one branch"];
  }
  if (first_come(branches) < *most_on_storages(branches))
    ++counts["staged on more samples than first come"];
  if (layout.arenas.empty()) ++counts["laid out: no saved arena"];
}

// What is wrong with what lay_out() made of the branches of a seed; empty: nothing.
std::string wrong(const std::vector<BranchTensors>& branches, const Outcome& outcome) {
  const std::set<std::string> rules = refusals(branches);
  if (!outcome.layout)
    return rules.contains(outcome.rule) ? "" : fmt::format("{} is none of {}", outcome.rule, rules);
  if (!rules.empty()) return fmt::format("accepted against {}", rules);
  return fmt::format("{}", fmt::join(violations(branches, *outcome.layout), "\n"));
}

void expect_every_kind(Counts& counts) {
  for (const char* rule :
       {"C21", "C25", "L01", "L02", "L03", "L04", "L05", "L06", "L07", "L08", "L09"})
    EXPECT_GT(counts[fmt::format("refused: {}", rule)], 0) << rule;
  EXPECT_EQ(counts.size(), 60u) << "a kind is missing or new";
  EXPECT_GT(counts["laid out"], static_cast<int>(kSeeds) * 3 / 4);
}

TEST(LayoutChecker, EveryRandomLayoutIsRightOrRightlyRefused) {
  Counts counts;
  std::map<std::string, std::uint64_t> first_seed;  // of everything wrong
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto [branches, choices] = random_branches(seed);
    for (const auto& [choice, times] : choices) counts["drawn: " + choice] += times;
    count_branches(branches, counts);
    const Outcome outcome = laid_out(branches);
    if (outcome.layout)
      count_layout(branches, *outcome.layout, counts);
    else
      ++counts["refused: " + outcome.rule];
    const std::string what = wrong(branches, outcome);
    if (!what.empty()) first_seed.emplace(what, seed);
    ASSERT_LT(first_seed.size(), 20u) << fmt::format("{}", fmt::join(first_seed, "\n"));
  }
  EXPECT_TRUE(first_seed.empty()) << fmt::format("{}", fmt::join(first_seed, "\n"));
  for (const auto& [what, times] : counts) fmt::print("{:>8} {}\n", times, what);
  expect_every_kind(counts);
}

// Every place is determined, but for the order of equal clusters, so none can move unseen.
TEST(LayoutChecker, NoPlaceOfARandomLayoutCanMoveUnseen) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const std::vector<BranchTensors> branches = random_branches(seed).branches;
    const Outcome outcome = laid_out(branches);
    if (!outcome.layout) continue;
    ArenaLayout layout = *outcome.layout;
    const auto move = [&](std::int64_t& place) {
      for (int by : {1, 8, 256, -256}) {
        place += by;
        EXPECT_FALSE(violations(branches, layout).empty()) << "seed " << seed << " by " << by;
        place -= by;
        ++moved;
      }
    };
    for (BranchLayout& branch : layout.branches) {
      for (auto* surface : {&branch.outputs, &branch.user_gradients})
        for (auto& offset : surface->offsets)
          if (offset) move(*offset);
      for (auto& place : branch.saved.places)
        if (place) move(place->offset);
    }
  }
  EXPECT_GT(moved, 5'000);
}

// Tensors of floats.
TensorSpec floats(int storage, std::int64_t elements, std::int64_t first = 0) {
  return {storage, first * 4, {elements}, {1}, 4};
}
SurfaceTensor in_arena(const TensorSpec& tensor) { return {Kind::kArena, tensor}; }
SavedTensor save(const TensorSpec& tensor, int version = 0) { return {true, tensor, version}; }

// Two branches of a frame and one of another colour. Storages: inputs 1 and 2, outputs 3 and 4,
// a parameter 5, activations 6 and 7; of the second branch 11 and so on.
std::vector<BranchTensors> sample() {
  BranchTensors first;
  first.colour = 7;
  first.gradient_colour = 8;
  first.inputs = {floats(1, 16), floats(2, 16)};
  first.input_versions = {0, 0};
  first.module_state = {5};
  first.outputs = {in_arena(floats(3, 16)),
                   in_arena(floats(3, 12, 4)),
                   in_arena(floats(4, 8)),
                   {Kind::kModuleState, floats(5, 4)}};
  first.output_versions = {0, 0, 0, 0};
  first.saved = {save(floats(1, 16)),      save(floats(3, 4, 4)), save(floats(6, 32)),
                 save(floats(6, 32, 16)),  save(floats(7, 80)),   save(floats(4, 8), -1),
                 {false, floats(5, 4), 0}, save(floats(2, 16))};
  first.user_gradients = {in_arena(floats(8, 16)), in_arena(floats(9, 16))};
  BranchTensors second = first;
  second.branch = 1;
  second.inputs[0].storage = second.saved[0].tensor.storage = 11;
  second.saved.resize(5);
  BranchTensors third = first;
  third.colour = 9;
  third.gradient_colour = 10;
  third.frame = 1;
  third.inputs = {floats(1, 16), floats(12, 16)};
  third.saved.resize(3);
  return {first, second, third};
}

// The tags of the violations.
std::set<std::string> tags(const std::vector<std::string>& found) {
  std::set<std::string> result;
  for (const std::string& violation : found)
    result.insert(violation.substr(0, violation.find(':')));
  return result;
}

struct Fault {
  const char* name;
  const char* tag;
  std::function<void(ArenaLayout&)> inject;
};

SavedPlace& saved_place(ArenaLayout& layout, int save) {
  return *layout.branches[0].saved.places[save];
}
std::int64_t& output_place(ArenaLayout& layout, int output) {
  return *layout.branches[0].outputs.offsets[output];
}
std::int64_t& gradient_place(ArenaLayout& layout, int gradient) {
  return *layout.branches[0].user_gradients.offsets[gradient];
}
StagingGroup& group(ArenaLayout& layout, int number) { return layout.staging.groups[number]; }

void expect_reported(const std::vector<Fault>& faults) {
  const ArenaLayout right = lay_out(sample());
  for (const Fault& fault : faults) {
    ArenaLayout layout = right;
    fault.inject(layout);
    const auto found = violations(sample(), layout);
    EXPECT_TRUE(tags(found).contains(fault.tag))
        << fault.name << fmt::format(": {}", fmt::join(found, "; "));
  }
}

TEST(LayoutChecker, TheSampleIsRight) {
  const ArenaLayout layout = lay_out(sample());
  EXPECT_EQ(violations(sample(), layout), std::vector<std::string>{});
  EXPECT_EQ(layout.arenas, (std::map<int, std::int64_t>{{7, 1792}, {9, 768}}));
  EXPECT_EQ(layout.gradient_arenas, (std::map<int, std::int64_t>{{8, 512}, {10, 512}}));
  EXPECT_EQ(layout.staging.groups[0].storage, 11);
  EXPECT_EQ(layout.staging.groups[1].storage, 1);
}

TEST(LayoutChecker, ReportsPlacesThatAreMissingOrTooMany) {
  expect_reported({
      {"an output without a place", "place",
       [](auto& l) { l.branches[0].outputs.offsets[0].reset(); }},
      {"module state in the arena", "place", [](auto& l) { l.branches[0].outputs.offsets[3] = 0; }},
      {"a gradient without a place", "place",
       [](auto& l) { l.branches[0].user_gradients.offsets[1].reset(); }},
      {"a save without a place", "place", [](auto& l) { l.branches[0].saved.places[4].reset(); }},
      {"an external save in the arena", "place",
       [](auto& l) { l.branches[0].saved.places[6] = SavedPlace{}; }},
      {"a branch less", "shape", [](auto& l) { l.branches.pop_back(); }},
      {"an output less", "shape", [](auto& l) { l.branches[0].outputs.offsets.pop_back(); }},
      {"a save more", "shape", [](auto& l) { l.branches[0].saved.places.push_back({}); }},
  });
}

TEST(LayoutChecker, ReportsPlacesThatMoved) {
  expect_reported({
      {"an output below 0", "bounds", [](auto& l) { output_place(l, 2) = -256; }},
      {"an output in the spill", "bounds", [](auto& l) { output_place(l, 2) = 512; }},
      {"an output on another", "overlap", [](auto& l) { output_place(l, 2) = 0; }},
      {"an output off the pieces", "alignment", [](auto& l) { output_place(l, 2) += 16; }},
      {"an output off its items", "alignment", [](auto& l) { output_place(l, 2) += 2; }},
      {"an alias that moved", "alias", [](auto& l) { output_place(l, 1) += 4; }},
      {"outputs in another order", "address",
       [](auto& l) {
         output_place(l, 0) = 256, output_place(l, 1) = 272, output_place(l, 2) = 0;
         saved_place(l, 1).offset += 256;
       }},
      {"a save behind the arena", "bounds", [](auto& l) { saved_place(l, 4).offset += 2048; }},
      {"a save in the outputs", "bounds", [](auto& l) { saved_place(l, 4).offset = 256; }},
      {"a save on an output", "overlap", [](auto& l) { saved_place(l, 4).offset = 256; }},
      {"a save on another", "overlap",
       [](auto& l) { saved_place(l, 5).offset = saved_place(l, 4).offset; }},
      {"a save off the pieces", "alignment", [](auto& l) { saved_place(l, 5).offset += 4; }},
      {"half a cluster", "alias", [](auto& l) { saved_place(l, 3).offset += 4; }},
      {"the smaller cluster first", "address",
       [](auto& l) {
         saved_place(l, 5).offset = 512, saved_place(l, 4).offset = 768;
         saved_place(l, 2).offset = 1280, saved_place(l, 3).offset = 1344;
       }},
      {"a gradient on another", "address", [](auto& l) { gradient_place(l, 1) = 0; }},
      {"a gradient off the pieces", "alignment", [](auto& l) { gradient_place(l, 1) = 64; }},
      {"a gradient behind its arena", "bounds", [](auto& l) { gradient_place(l, 1) = 512; }},
  });
}

TEST(LayoutChecker, ReportsWrongBoundaries) {
  expect_reported({
      {"a backed save that is not said to be", "boundary",
       [](auto& l) { saved_place(l, 1).is_boundary = false; }},
      {"a save in the spill said to be backed", "boundary",
       [](auto& l) { saved_place(l, 4).is_boundary = true; }},
      {"a save in a buffer that it does not have", "boundary",
       [](auto& l) { saved_place(l, 7).region = Region::kStaging; }},
      {"a save of the leading input in the arena", "boundary",
       [](auto& l) { saved_place(l, 0).region = Region::kArena; }},
      {"the leading input at another place", "alias",
       [](auto& l) { saved_place(l, 0).offset += 4; }},
      {"a slice of an output at another place", "alias",
       [](auto& l) { saved_place(l, 1).offset += 4; }},
      {"an old version in the output of the new one", "overlap",
       [](auto& l) { saved_place(l, 5).offset = output_place(l, 2); }},
      {"two components for one cluster", "alias",
       [](auto& l) { saved_place(l, 3).component = 99; }},
      {"one component for two clusters", "alias",
       [](auto& l) { saved_place(l, 4).component = saved_place(l, 5).component; }},
  });
}

TEST(LayoutChecker, ReportsWrongSizes) {
  expect_reported({
      {"an arena too small", "size", [](auto& l) { l.arenas[7] -= 256; }},
      {"an arena too small for a save", "bounds", [](auto& l) { l.arenas[7] -= 256; }},
      {"the sum instead of the maximum", "size",
       [](auto& l) { l.arenas[7] += l.branches[1].need(); }},
      {"the last branch's need", "size", [](auto& l) { l.arenas[7] = l.branches[1].need(); }},
      {"no arena", "size", [](auto& l) { l.arenas.erase(9); }},
      {"an arena of no branch", "size", [](auto& l) { l.arenas[99] = 256; }},
      {"an arena without bytes", "size", [](auto& l) { l.gradient_arenas[99] = 0; }},
      {"a gradient arena too large", "size", [](auto& l) { l.gradient_arenas[8] += 256; }},
      {"outputs too small", "size", [](auto& l) { l.branches[0].outputs.bytes = 256; }},
      {"outputs too large", "size", [](auto& l) { l.branches[2].outputs.bytes += 256; }},
      {"spill too small", "size", [](auto& l) { l.branches[0].saved.spill_bytes -= 256; }},
      {"gradients too large", "size", [](auto& l) { l.branches[0].user_gradients.bytes += 256; }},
  });
}

TEST(LayoutChecker, ReportsAddressesThatDifferInAFrame) {
  expect_reported({
      {"all outputs of one branch higher", "address",
       [](auto& l) {
         for (int i = 0; i < 3; ++i) output_place(l, i) += 256;
       }},
      {"gradients of one branch in another order", "address",
       [](auto& l) { gradient_place(l, 0) = 256, gradient_place(l, 1) = 0; }},
  });
}

TEST(LayoutChecker, ReportsWrongStaging) {
  expect_reported({
      {"one storage for two groups", "staging", [](auto& l) { group(l, 0).storage = 1; }},
      {"storages swapped", "staging",
       [](auto& l) { std::swap(group(l, 0).storage, group(l, 1).storage); }},
      {"the other input's storage", "staging", [](auto& l) { group(l, 0).storage = 2; }},
      {"module state", "staging", [](auto& l) { group(l, 0).storage = 5; }},
      {"no sample's storage", "staging", [](auto& l) { group(l, 0).storage = 99; }},
      {"a fresh buffer without need", "staging",
       [](auto& l) { group(l, 0).storage.reset(), group(l, 0).bytes = 64; }},
      {"a fresh buffer too small", "staging",
       [](auto& l) { group(l, 0).storage.reset(), group(l, 0).bytes = 60; }},
      {"a member in two groups", "staging", [](auto& l) { group(l, 1).members.push_back(0); }},
      {"a member less", "staging", [](auto& l) { group(l, 0).members.pop_back(); }},
      {"a branch that names another group", "staging",
       [](auto& l) { l.staging.group_of_branch[1] = 1; }},
      {"no groups", "staging", [](auto& l) { l.staging.groups.clear(); }},
  });
}

// What breaks only with other branches than the sample's.
TEST(LayoutChecker, ReportsStorageThatIsAnotherInputOfAnotherColour) {
  std::vector<BranchTensors> branches = sample();
  branches[2].inputs[1].storage = 11;
  branches[2].inputs[0].storage = 21;
  ArenaLayout layout = lay_out(branches);
  EXPECT_EQ(violations(branches, layout), std::vector<std::string>{});
  EXPECT_EQ(layout.staging.groups[0].storage, 1);
  layout.staging.groups[0].storage = 11;
  EXPECT_EQ(tags(violations(branches, layout)), std::set<std::string>{"staging"});
}

TEST(LayoutChecker, ReportsABufferThatBreaksOrInventsAnAlias) {
  std::vector<BranchTensors> branches = sample();
  branches[0].inputs[1].storage = 1;
  ArenaLayout layout = lay_out(branches);
  EXPECT_EQ(violations(branches, layout), std::vector<std::string>{});
  EXPECT_EQ(layout.staging.groups[0].storage, 1);
  layout.staging.groups[0].storage = 11;
  EXPECT_EQ(tags(violations(branches, layout)), std::set<std::string>{"staging"});
  layout.staging.groups[0] = {{0, 1}, std::nullopt, 64};
  EXPECT_EQ(tags(violations(branches, layout)), std::set<std::string>{"staging"});
}

// Positions that are module state in all branches are skipped, whatever they share.
TEST(LayoutChecker, BranchesMayReturnOtherModuleState) {
  std::vector<BranchTensors> branches = sample();
  for (BranchTensors& branch : branches) {
    branch.module_state.push_back(6);
    branch.outputs.push_back({Kind::kModuleState, floats(6, 4)});
    branch.output_versions.push_back(0);
  }
  branches[1].outputs[4].tensor.storage = 5;
  EXPECT_EQ(laid_out(branches).rule, "");
  EXPECT_EQ(refusals(branches), std::set<std::string>{});
}

TEST(LayoutChecker, ModuleStateOfAnyBranchIsNoStagingBuffer) {
  std::vector<BranchTensors> branches = sample();
  branches[2].module_state.push_back(11);
  EXPECT_EQ(laid_out(branches).rule, "C21");
  EXPECT_EQ(refusals(branches), std::set<std::string>{"C21"});
}

struct WorkedSizes {
  const char* name;
  BranchTensors branch;
  std::int64_t outputs, spill;
};

constexpr std::int64_t kN = 4096;

BranchTensors module(std::vector<SavedTensor> saved) {
  BranchTensors branch;
  branch.inputs = {floats(1, kN)};
  branch.input_versions = {0};
  branch.outputs = {in_arena(floats(2, kN))};
  branch.output_versions = {0};
  branch.saved = std::move(saved);
  return branch;
}

// Modules whose arenas are easy to work out by hand.
std::vector<WorkedSizes> worked_sizes() {
  BranchTensors scaled = module({save(floats(3, kN))});
  scaled.inputs.push_back(floats(3, kN));
  scaled.input_versions.push_back(0);
  BranchTensors sliced = module({save(floats(1, 16))});
  sliced.inputs = {floats(1, 16)};
  sliced.outputs = {in_arena(floats(2, 16)), in_arena(floats(2, 12, 4))};
  sliced.output_versions = {0, 0};
  BranchTensors state = module({save(floats(1, kN))});
  state.module_state = {5};
  state.outputs.push_back({Kind::kModuleState, floats(5, kN)});
  state.output_versions.push_back(0);
  return {
      {"square", module({save(floats(1, kN))}), 16384, 0},
      {"sigmoid", module({save(floats(2, kN))}), 16384, 0},
      {"h = 2x; h*h", module({save(floats(3, kN)), save(floats(3, kN))}), 16384, 16384},
      {"two views", module({save(floats(3, 3 * kN)), save(floats(3, 3 * kN, kN))}), 16384, 65536},
      {"x * scale", scaled, 16384, 16384},
      {"expanded", module({save({3, 0, {kN}, {0}, 4})}), 16384, 256},
      {"y, y[4:]", sliced, 256, 0},
      {"x^2 and a parameter", state, 16384, 0},
  };
}

TEST(LayoutChecker, WorkedSizesOfTheReference) {
  for (const auto& [name, branch, outputs, spill] : worked_sizes()) {
    const ArenaLayout layout = lay_out({branch});
    EXPECT_EQ(violations({branch}, layout), std::vector<std::string>{}) << name;
    EXPECT_EQ(layout.branches[0].outputs.bytes, outputs) << name;
    EXPECT_EQ(layout.branches[0].saved.spill_bytes, spill) << name;
    EXPECT_EQ(layout.arenas, (std::map<int, std::int64_t>{{0, outputs + spill}})) << name;
    EXPECT_TRUE(layout.gradient_arenas.empty()) << name;
  }
}

}  // namespace
}  // namespace slotgraph::testing

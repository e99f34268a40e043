#include "core/layout/arena_layout.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/testing/rule.h"

namespace slotgraph {
namespace {

using testing::rule;

// A dense float tensor.
TensorSpec floats(int storage, std::int64_t first, std::int64_t count) {
  TensorSpec tensor;
  tensor.storage = storage;
  tensor.offset = 4 * first;
  tensor.sizes = {count};
  tensor.strides = {1};
  return tensor;
}

SurfaceTensor arena(TensorSpec tensor) { return {SurfaceTensor::Kind::kArena, std::move(tensor)}; }
SurfaceTensor state(TensorSpec tensor) {
  return {SurfaceTensor::Kind::kModuleState, std::move(tensor)};
}
SurfaceTensor none() { return {SurfaceTensor::Kind::kNone, {}}; }

TEST(Span, CountsFromTheFirstToTheLastElement) {
  TensorSpec tensor = floats(0, 3, 5);
  EXPECT_EQ(range_of(tensor), (ByteRange{12, 32}));
  tensor.sizes = {2, 3};
  tensor.strides = {1, 10};
  EXPECT_EQ(span_bytes(tensor), 4 * (1 + 20 + 1));
  tensor.strides = {0, 0};
  EXPECT_EQ(span_bytes(tensor), 4) << "expanded";
  tensor.sizes = {2, 0};
  EXPECT_EQ(span_bytes(tensor), 0);
  tensor.sizes = tensor.strides = {};
  EXPECT_EQ(span_bytes(tensor), 4) << "a scalar";
}

TEST(Cluster, MergesOverlapsAndKeepsTouchingRangesApart) {
  TensorSpec wide = floats(0, 2, 4);
  wide.item_bytes = 8;
  const auto components = cluster(
      {floats(0, 0, 2), floats(0, 2, 2), floats(0, 3, 3), floats(1, 0, 9), floats(0, 0, 0), wide},
      {0, 0, 0, 1, 0, 2});
  ASSERT_EQ(components.size(), 4u);
  EXPECT_EQ(components[0].members, (std::vector{0}));
  EXPECT_EQ(components[1].members, (std::vector{1, 2}));
  EXPECT_EQ(components[1].range, (ByteRange{8, 24}));
  EXPECT_EQ(components[3].alignment, 8);
  EXPECT_EQ(cluster({floats(0, 1, 1)}, {-1}).size(), 0u);
}

// An output and its slice share a storage, so they are one group of 64 bytes.
TEST(Outputs, KeepAliasesAndTheirPlaces) {
  const SurfaceLayout layout =
      lay_out_outputs({arena(floats(5, 0, 16)), none(), state(floats(9, 0, 4)),
                       arena(floats(5, 4, 12)), arena(floats(6, 3, 100))});
  EXPECT_EQ(layout.offsets,
            (std::vector<std::optional<std::int64_t>>{0, std::nullopt, std::nullopt, 16, 256}));
  EXPECT_EQ(layout.bytes, 256 + 512);
}

TEST(Gradients, LieOneAfterAnotherWhateverTheyAlias) {
  const SurfaceLayout layout =
      lay_out_gradients({arena(floats(5, 0, 65)), none(), arena(floats(5, 0, 65))});
  EXPECT_EQ(layout.offsets, (std::vector<std::optional<std::int64_t>>{0, std::nullopt, 512}));
  EXPECT_EQ(layout.bytes, 1024);
}

SavedTensor saved(TensorSpec tensor, int version = 0) { return {true, std::move(tensor), version}; }

TEST(Observe, PrefersVersionThenSizeThenInputs) {
  const std::vector<Boundary> boundaries{{Boundary::Kind::kOutput, 0, floats(1, 0, 8), 1},
                                         {Boundary::Kind::kInput, 1, floats(1, 0, 8), 0},
                                         {Boundary::Kind::kInput, 0, floats(1, 0, 9), 0},
                                         {Boundary::Kind::kOutput, 1, floats(1, 0, 8), 0}};
  EXPECT_EQ(boundary_of(saved(floats(1, 0, 4), 0), boundaries), 1);
  EXPECT_EQ(boundary_of(saved(floats(1, 0, 4), 1), boundaries), 0);
  EXPECT_EQ(boundary_of(saved(floats(1, 0, 9), 1), boundaries), 2) << "contained in it alone";
  EXPECT_EQ(boundary_of(saved(floats(2, 0, 4), 0), boundaries), std::nullopt);
  EXPECT_EQ(boundary_of(saved(floats(1, 0, 0), 0), boundaries), std::nullopt);
}

TEST(Saved, LieInTheBoundaryThatCoversTheirCluster) {
  const SurfaceLayout outputs = lay_out_outputs({arena(floats(1, 2, 16))});
  const std::vector<Boundary> boundaries{{Boundary::Kind::kInput, 0, floats(0, 3, 16), 0},
                                         {Boundary::Kind::kInput, 1, floats(2, 0, 16), 0},
                                         {Boundary::Kind::kOutput, 0, floats(1, 2, 16), 0}};
  const SavedLayout layout =
      lay_out_saved({saved(floats(0, 5, 2)), saved(floats(1, 4, 3)), saved(floats(2, 0, 4)),
                     saved(floats(1, 2, 16), 1), saved(floats(3, 0, 100))},
                    boundaries, outputs);
  EXPECT_EQ(layout.places[0]->region, SavedPlace::Region::kStaging);
  EXPECT_EQ(layout.places[0]->offset, 20);
  EXPECT_TRUE(layout.places[1]->is_boundary);
  EXPECT_EQ(layout.places[1]->offset, 8);
  EXPECT_FALSE(layout.places[2]->is_boundary) << "another input is no boundary";
  EXPECT_FALSE(layout.places[3]->is_boundary) << "saved before a write";
  EXPECT_EQ(layout.places[4]->offset, outputs.bytes) << "the largest comes first";
  EXPECT_EQ(layout.spill_bytes, 512 + 256 + 256);
}

TEST(Saved, ABoundaryMustCoverTheWholeCluster) {
  const SurfaceLayout outputs = lay_out_outputs({arena(floats(1, 0, 8))});
  const SavedLayout layout =
      lay_out_saved({saved(floats(1, 0, 8)), saved(floats(1, 4, 8))},
                    {{Boundary::Kind::kOutput, 0, floats(1, 0, 8), 0}}, outputs);
  EXPECT_FALSE(layout.places[0]->is_boundary);
  EXPECT_EQ(layout.places[1]->offset - layout.places[0]->offset, 16);
}

TEST(Saved, RefusesWhatCannotBePlaced) {
  EXPECT_EQ(rule([] {
              lay_out_saved({saved(floats(1, 0, 8))},
                            {{Boundary::Kind::kOutput, 0, floats(1, 0, 8), 0}},
                            lay_out_outputs({state(floats(1, 0, 8))}));
            }),
            "L09");
  TensorSpec odd = floats(1, 0, 8);
  odd.offset = 2;
  TensorSpec bytes = floats(1, 0, 40);
  bytes.item_bytes = 1;
  EXPECT_EQ(rule([&] { lay_out_saved({saved(odd), saved(bytes)}, {}, {}); }), "L08");
  // Two outputs of one storage have one anchor, whatever the offsets.
  EXPECT_EQ(rule([] {
              lay_out_saved({saved(floats(1, 0, 8)), saved(floats(1, 0, 4))},
                            {{Boundary::Kind::kOutput, 0, floats(1, 0, 8), 0},
                             {Boundary::Kind::kOutput, 1, floats(1, 0, 9), 0}},
                            lay_out_outputs({arena(floats(1, 0, 8)), arena(floats(1, 0, 9))}));
            }),
            "");
}

// Each member may lie in several boundaries; all choose the same.
TEST(Saved, AClusterHasOneBoundary) {
  const SurfaceLayout outputs = lay_out_outputs({arena(floats(1, 0, 9))});
  const std::vector<Boundary> boundaries{{Boundary::Kind::kInput, 0, floats(1, 0, 10), 0},
                                         {Boundary::Kind::kOutput, 0, floats(1, 0, 9), 0}};
  const SavedLayout layout =
      lay_out_saved({saved(floats(1, 0, 8)), saved(floats(1, 1, 8))}, boundaries, outputs);
  EXPECT_EQ(layout.places[0]->region, SavedPlace::Region::kArena) << "the smaller one";
  EXPECT_EQ(layout.places[1]->offset, 4);
  const SavedLayout larger =
      lay_out_saved({saved(floats(1, 0, 8)), saved(floats(1, 1, 9))}, boundaries, outputs);
  EXPECT_EQ(larger.places[0]->region, SavedPlace::Region::kStaging);
  EXPECT_EQ(larger.places[1]->region, SavedPlace::Region::kStaging);
}

TEST(Frames, NameTheFirstDifference) {
  const auto broken = [](std::vector<SurfaceTensor> other) {
    const std::vector<SurfaceTensor> first{arena(floats(1, 0, 4)), state(floats(2, 0, 4)),
                                           arena(floats(1, 2, 2))};
    return rule([&] { check_frames({{0, 0, first}, {1, 0, {}}, {0, 1, std::move(other)}}); });
  };
  const auto a = [](int storage) { return arena(floats(storage, 0, 9)); };
  EXPECT_EQ(broken({a(7), state(floats(8, 0, 4)), a(7)}), "");
  EXPECT_EQ(broken({a(7), state(floats(8, 0, 4))}), "L03");
  EXPECT_EQ(broken({a(7), state(floats(8, 0, 4)), a(9)}), "L04");
  EXPECT_EQ(broken({a(7), none(), a(7)}), "L05");
  EXPECT_EQ(broken({a(7), a(8), a(7)}), "L06");
  SurfaceTensor other = a(7);
  other.tensor.dtype = 3;
  EXPECT_EQ(broken({other, state(floats(8, 0, 4)), a(7)}), "L07");
  other = a(7);
  other.tensor.device = 1;
  EXPECT_EQ(broken({other, state(floats(8, 0, 4)), a(7)}), "L07");
  other = a(7);
  other.tensor.requires_grad = true;
  EXPECT_EQ(broken({other, state(floats(8, 0, 4)), a(7)}), "L07");
  EXPECT_EQ(rule([] {
              check_frames({{0, 0, {}}, {0, 1, {none()}}, {3, 2, {}}, {3, 2, {}}});
            }),
            "L02")
      << "before the numbers of an earlier frame";
}

StagedBranch staged(int colour, TensorSpec leading, std::vector<int> others = {},
                    std::vector<int> module_state = {}) {
  return {colour, std::move(leading), std::move(others), std::move(module_state)};
}

TEST(Staging, GroupsByColourAndLayout) {
  const StagingPlan plan = plan_staging({staged(0, floats(1, 0, 4)), staged(1, floats(2, 0, 4)),
                                         staged(0, floats(3, 0, 4)), staged(0, floats(4, 0, 5))});
  EXPECT_EQ(plan.group_of_branch, (std::vector{0, 1, 0, 2}));
  EXPECT_EQ(plan.groups[0].storage, 1);
  EXPECT_EQ(plan.groups[1].storage, 2);
}

// Colours 0 and 1 share storage 1; only colour 0 has another one to move to.
TEST(Staging, MovesAGroupToLetAnotherHaveItsOnlyStorage) {
  const StagingPlan plan = plan_staging(
      {staged(0, floats(1, 0, 4)), staged(0, floats(2, 0, 4)), staged(1, floats(1, 0, 4))});
  EXPECT_EQ(plan.groups[0].storage, 2);
  EXPECT_EQ(plan.groups[1].storage, 1);
}

TEST(Staging, TakesAFreshBufferWhereSamplesRunOut) {
  const StagingPlan plan = plan_staging({staged(0, floats(1, 2, 4)), staged(1, floats(1, 2, 4))});
  EXPECT_EQ(plan.groups[0].storage, 1);
  EXPECT_EQ(plan.groups[1].storage, std::nullopt);
  EXPECT_EQ(plan.groups[1].bytes, 24);
}

// Samples [(a, b)], [(c, a)] of one colour: binding both to a would make the second's inputs one.
TEST(Staging, InventsNoAlias) {
  const StagingPlan plan =
      plan_staging({staged(0, floats(1, 0, 4), {2}), staged(0, floats(3, 0, 4), {1})});
  EXPECT_EQ(plan.groups[0].storage, 3);
}

TEST(Staging, BreaksNoAlias) {
  const StagingPlan alike =
      plan_staging({staged(0, floats(1, 0, 4), {1}), staged(0, floats(1, 0, 4), {1})});
  EXPECT_EQ(alike.groups[0].storage, 1);
  EXPECT_EQ(rule([] {
              plan_staging({staged(0, floats(1, 0, 4), {1}), staged(0, floats(2, 0, 4), {2})});
            }),
            "L01");
}

// The second branch is live while the first is: its other input must not be overwritten.
TEST(Staging, TakesNoOtherInputOfAnotherColour) {
  const StagingPlan plan =
      plan_staging({staged(0, floats(1, 0, 4)), staged(1, floats(2, 0, 4), {1})});
  EXPECT_EQ(plan.groups[0].storage, std::nullopt);
  EXPECT_EQ(plan.groups[1].storage, 2);
}

TEST(Staging, RefusesModuleState) {
  EXPECT_EQ(rule([] {
              plan_staging({staged(0, floats(1, 0, 4)), staged(1, floats(2, 0, 4), {}, {1})});
            }),
            "C21");
  EXPECT_EQ(rule([] {
              plan_staging({staged(0, floats(1, 0, 4), {5}), staged(1, floats(2, 0, 4), {}, {5})});
            }),
            "C21");
}

TEST(LayOut, TakesTheLargestNeedOfEachColour) {
  const auto branch = [](int colour, int number, std::int64_t tokens) {
    BranchTensors branch;
    branch.colour = colour;
    branch.branch = number;
    branch.inputs = {floats(10 * number, 0, tokens)};
    branch.input_versions = {0};
    branch.outputs = {arena(floats(10 * number + 1, 0, tokens))};
    branch.output_versions = {0};
    branch.saved = {saved(floats(10 * number, 0, tokens)),
                    saved(floats(10 * number + 2, 0, 2 * tokens))};
    branch.user_gradients = {arena(floats(10 * number + 3, 0, tokens))};
    return branch;
  };
  const ArenaLayout layout = lay_out({branch(0, 0, 100), branch(0, 1, 1000), branch(1, 2, 64)});
  EXPECT_EQ(layout.arenas, (std::map<int, std::int64_t>{{0, 4096 + 8192}, {1, 256 + 512}}));
  EXPECT_EQ(layout.gradient_arenas, (std::map<int, std::int64_t>{{0, 4096}}));
  EXPECT_EQ(layout.branches[1].outputs.offsets[0], 0);
  EXPECT_EQ(rule([] { lay_out({BranchTensors{}}); }), "C25");
}

}  // namespace
}  // namespace slotgraph

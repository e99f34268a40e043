#include "core/graph/warmup/profile.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <gtest/gtest.h>

#include "core/device/device.h"

namespace slotgraph {
namespace {

using Kind = Role::Kind;

struct Profile : ::testing::Test {
  static void SetUpTestSuite() { device::initialise(); }
  static at::Tensor floats(at::IntArrayRef sizes) { return at::empty(sizes, at::kCUDA); }
  static Allocation of(const at::Tensor& tensor, bool alive) {
    return {tensor.storage().nbytes(), tensor.storage().data(), false, alive};
  }
};

TEST_F(Profile, SurvivorsTakeTheRoleOfTheirFirstOutputOrTheirBirth) {
  const at::Tensor saved = floats({2}), transient = floats({3}), out = floats({4, 2}),
                   late = floats({5});
  const Tensors outputs{out.transpose(0, 1), late, out};
  const auto found = classify_forward(
      {of(saved, true), of(transient, false), of(out, true), of(late, true)}, outputs);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].role, (Role{Kind::kRest, 0}));
  EXPECT_EQ(found[1].role, std::nullopt);
  EXPECT_EQ(found[2].role, (Role{Kind::kOutput, 0}))
      << "a view and the tensor itself: the first position";
  EXPECT_EQ(found[3].role, (Role{Kind::kOutput, 1}));
}

TEST_F(Profile, OnlyAGradientThatThisBackwardAllocatedDenseIsPlaced) {
  const at::Tensor own = floats({4}), foreign = floats({4});
  EXPECT_EQ(classify_backward({of(own, true)}, own)[0].role, (Role{Kind::kGradient, 0}));
  EXPECT_EQ(classify_backward({of(own, true)}, foreign)[0].role, std::nullopt)
      << "it aliases something else";
  EXPECT_EQ(classify_backward({of(own, true)}, at::Tensor())[0].role, std::nullopt);
  EXPECT_EQ(classify_backward({of(own, true)}, own.expand({3, 4}))[0].role, std::nullopt)
      << "expanded: copied";
}

TEST_F(Profile, MergeKeepsEverySurvivorOfEqualSequencesAndElseTheNewer) {
  const std::vector<ProfiledAllocation> a{{8, Role{Kind::kRest, 0}}, {16, std::nullopt}};
  const std::vector<ProfiledAllocation> b{{8, std::nullopt}, {16, Role{Kind::kRest, 0}}};
  const std::vector<ProfiledAllocation> both{{8, Role{Kind::kRest, 0}}, {16, Role{Kind::kRest, 1}}};
  EXPECT_EQ(merge(a, b), both);
  const std::vector<ProfiledAllocation> other{{8, std::nullopt}, {17, std::nullopt}};
  EXPECT_EQ(merge(a, other), other);
  EXPECT_EQ(merge(a, {a[0]}).size(), 1u);
}

TEST_F(Profile, GradientsAreLaidOutLikeDenseOutputs) {
  const at::Tensor transposed = floats({3, 5}).transpose(0, 1);
  EXPECT_EQ(gradient_shape(transposed).strides, (std::vector<std::int64_t>{1, 5}));
  EXPECT_EQ(gradient_shape(floats({1, 5}).expand({3, 5})).strides,
            (std::vector<std::int64_t>{5, 1}));
  EXPECT_EQ(storage_bytes({{3, 5}, {1, 3}, at::kFloat}), 60u);
  EXPECT_EQ(storage_bytes({{0, 5}, {5, 1}, at::kFloat}), 0u);
}

}  // namespace
}  // namespace slotgraph

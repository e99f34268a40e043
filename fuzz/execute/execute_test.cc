#include "fuzz/execute/execute.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/models/blocks.h"
#include "fuzz/execute/observer.h"
#include "fuzz/generate/generate.h"

namespace slotgraph::fuzz {
namespace {

struct Execute : ::testing::Test {
  static void SetUpTestSuite() { device::initialise(); }
};

// The first case of its kind, small.
Case small_case() {
  const Sources sources = read_sources("core/plan/testdata", "core/order/testdata/schedules.jsonl",
                                       "p2-l2-k2.r0", block_names());
  Case value = generate(sources, case_seed(5, 0)).value;
  value.schedule = {"test", {0, 1, 1, 0}};
  for (LayerCase& layer : value.layers) layer = {.block = "mlp"};
  value.tokens = {16, 8};
  value.modes = slot_modes();
  return value;
}

TEST_F(Execute, KeptCapturesServeOtherSchedulesAndShowTheSameBits) {
  Case value = small_case();
  Executor kept({.keep_captures = true, .compare_on_device = true});
  const Record first = kept.run(value);
  EXPECT_EQ(first.verdict, Verdict::kHolds);
  EXPECT_GT(first.counters.frames_captured, 0u);
  value.schedule.variants = {1, 1, 0, 0};
  const Record second = kept.run(value);
  EXPECT_EQ(second.verdict, Verdict::kHolds);
  EXPECT_EQ(second.counters.frames_captured, 0u);
  EXPECT_EQ(second.layout_digest, first.layout_digest);
  EXPECT_NE(second.value_digest, first.value_digest);
  EXPECT_TRUE(kept.end().empty());
  Executor fresh({.keep_captures = true, .compare_on_device = true});
  EXPECT_EQ(fresh.run(value).value_digest, second.value_digest);
  EXPECT_TRUE(fresh.end().empty());
}

TEST_F(Execute, BothWaysOfComparingCompareTheSameTensors) {
  const Case value = small_case();
  Executor device({.compare_on_device = true});
  const Record there = device.run(value);
  const Record here = execute(value);
  EXPECT_EQ(there.verdict, Verdict::kHolds);
  EXPECT_EQ(there.counters.tensors_compared, here.counters.tensors_compared);
  EXPECT_EQ(there.counters.bytes_compared, here.counters.bytes_compared);
  EXPECT_EQ(there.layout_digest, here.layout_digest);
}

// What each way of comparing says of two executions that show one tensor each.
std::string compared(bool on_device, const at::Tensor& expected, const at::Tensor& found) {
  const auto truth = make_truth(on_device);
  truth->observe({}, "output 0", expected);
  truth->flush();
  const auto comparer = truth->make_comparer("test");
  if (found.numel() > 0) comparer->observe({}, "output 0", found);
  comparer->flush();
  const auto findings = comparer->findings();
  return findings.empty() ? "" : findings[0].what;
}

TEST_F(Execute, EveryDifferenceIsFound) {
  const at::Tensor zeros = at::zeros({4, 4}, at::kCUDA);
  at::Tensor negative = zeros.clone();
  negative[2][1] = -0.0;
  const at::Tensor nan = at::full({4, 4}, std::nan(""), zeros.options());
  for (const bool on_device : {false, true}) {
    EXPECT_EQ(compared(on_device, zeros, zeros.clone()), "");
    EXPECT_EQ(compared(on_device, nan, nan.clone()), "") << "the same bits";
    EXPECT_NE(compared(on_device, zeros, negative), "") << "-0.0";
    EXPECT_NE(compared(on_device, zeros, nan), "");
    EXPECT_NE(compared(on_device, zeros, zeros.narrow(0, 0, 3)), "") << "other sizes";
    EXPECT_NE(compared(on_device, zeros, zeros.to(at::kDouble)), "") << "another dtype";
    EXPECT_EQ(compared(on_device, zeros, at::empty({0}, zeros.options())), "never shown");
  }
}

TEST_F(Execute, TheDigestKnowsWhereEachElementIs) {
  const auto digest_of = [](bool on_device, const at::Tensor& tensor) {
    const auto truth = make_truth(on_device);
    truth->observe({}, "output 0", tensor);
    truth->flush();
    return truth->digest();
  };
  const at::Tensor rows =
      at::arange(12, at::TensorOptions(at::kCUDA).dtype(at::kFloat)).view({3, 4});
  for (const bool on_device : {false, true}) {
    EXPECT_EQ(digest_of(on_device, rows), digest_of(on_device, rows.clone()));
    EXPECT_NE(digest_of(on_device, rows), digest_of(on_device, rows.flip({0}))) << "other rows";
    EXPECT_NE(digest_of(on_device, rows), digest_of(on_device, rows.flip({1}))) << "other columns";
  }
}

// A tensor that was written between two looks is not taken for the first one.
TEST_F(Execute, TheTruthKeepsWhatItSawAtEachLook) {
  for (const bool on_device : {false, true}) {
    const auto truth = make_truth(on_device);
    at::Tensor shown = at::ones({4}, at::kCUDA);
    truth->observe({}, "first look", shown);
    shown.add_(1);
    truth->observe({}, "second look", shown);
    truth->flush();
    const auto comparer = truth->make_comparer("test");
    comparer->observe({}, "first look", at::ones({4}, at::kCUDA));
    comparer->observe({}, "second look", at::full({4}, 2.0, at::TensorOptions(at::kCUDA)));
    comparer->flush();
    EXPECT_TRUE(comparer->findings().empty()) << on_device;
    EXPECT_EQ(truth->digest().size(), 64u);
  }
}

}  // namespace
}  // namespace slotgraph::fuzz

// Shrinking: every reduction is a smaller, valid case; planted bugs end small.
#include "fuzz/shrink/shrink.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "core/graph/graph_callables.h"
#include "core/graph/state/process_state.h"
#include "core/models/block.h"
#include "core/models/blocks.h"
#include "fuzz/fault/scenario.h"
#include "fuzz/generate/generate.h"

namespace slotgraph::fuzz {
namespace {

// Planted bugs: blocks that compute something else while they are captured.
at::Tensor spoilt(const at::Tensor& x, bool spoil) { return spoil && capturing() ? x + 1 : x * 1; }

Forward always_wrong(Block&) {
  return [](at::TensorList in, const NamedTensors&) -> Tensors { return {spoilt(in[0], true)}; };
}
// Once a second variant has been captured.
Forward wrong_with_two_variants(Block&) {
  auto seen = std::make_shared<std::set<std::int64_t>>();
  return [seen](at::TensorList in, const NamedTensors&) -> Tensors {
    if (!capturing()) seen->clear();
    seen->insert(in[0].size(0));
    return {spoilt(in[0], seen->size() > 1)};
  };
}
// Only in rows of some width.
Forward wrong_when_wide(Block&) {
  return [](at::TensorList in, const NamedTensors&) -> Tensors {
    return {spoilt(in[0], in[0].size(1) > 4)};
  };
}

const bool added = register_block(kind("planted_always", always_wrong)) &&
                   register_block(kind("planted_variants", wrong_with_two_variants)) &&
                   register_block(kind("planted_wide", wrong_when_wide));

Experiment planted(const std::string& block) {
  const Sources sources = read_sources("core/plan/testdata", "core/order/testdata/schedules.jsonl",
                                       "p4v2n8-l2-k2", block_names());
  Experiment experiment;
  for (std::uint64_t index = 0;; ++index) {
    const Generated generated = generate(sources, case_seed(5, index));
    if (generated.skipped || !generated.value.mixes()) continue;
    experiment.value = generated.value;
    break;
  }
  experiment.value.tokens = {4, 8};
  experiment.value.modes = {Mode::kPlacement, Mode::kArena};
  for (LayerCase& layer : experiment.value.layers) layer.block = "mlp";
  experiment.value.layers.back().block = block;
  return experiment;
}

std::vector<std::string> signatures(const std::vector<Experiment>& experiments) {
  std::vector<std::string> result;
  for (const Experiment& experiment : experiments) result.push_back(observe(experiment).signature);
  return result;
}

Shrunk shrink_planted(const std::string& block, int at_once = 1) {
  const Experiment experiment = planted(block);
  const std::string signature = observe(experiment).signature;
  EXPECT_NE(signature, "") << block;
  ShrinkOptions options;
  options.at_once = at_once;
  const Shrunk shrunk = shrink(experiment, signature, signatures, options);
  EXPECT_EQ(observe(shrunk.experiment).signature, signature);
  EXPECT_TRUE(shrunk.canonical);
  fmt::print("{}: {} steps, {} runs\n", block, shrunk.steps, shrunk.runs);
  return shrunk;
}

void expect_small(const Case& value, int variants, const std::string& block) {
  EXPECT_EQ(value.plan.variants(), variants);
  EXPECT_LE(value.schedule.variants.size(), 2u);
  EXPECT_EQ(value.plan.layers(), 1);
  EXPECT_EQ(value.layers[0].block, block);
  EXPECT_EQ(value.steps, 1);
  EXPECT_EQ(value.dtype, "fp32");
  EXPECT_EQ(value.modes.size(), 1u);
  EXPECT_EQ(value.order_seed, 0u);
}

TEST(Shrink, ABugThatAlwaysShowsEndsAtTheSmallestCase) {
  const Case value = shrink_planted("planted_always").experiment.value;
  expect_small(value, 1, "planted_always");
  EXPECT_EQ(value.schedule.variants.size(), 1u);
  EXPECT_EQ(value.hidden, 1);
  EXPECT_EQ(value.tokens, std::vector<std::int64_t>{1});
}

TEST(Shrink, ABugOfTwoVariantsKeepsTwo) {
  const Case value = shrink_planted("planted_variants").experiment.value;
  expect_small(value, 2, "planted_variants");
  EXPECT_EQ(value.hidden, 1);
  EXPECT_EQ(value.tokens[0] + value.tokens[1], 3) << "two different counts: 1 and 2";
}

TEST(Shrink, ABugOfWideRowsKeepsThem) {
  const Case value = shrink_planted("planted_wide").experiment.value;
  expect_small(value, 1, "planted_wide");
  EXPECT_GT(value.hidden, 4);
  EXPECT_LE(value.hidden, 8);
}

TEST(Shrink, TheResultDoesNotDependOnHowManyRunAtOnce) {
  const Shrunk one = shrink_planted("planted_variants", 1);
  const Shrunk three = shrink_planted("planted_variants", 3);
  EXPECT_EQ(to_json(one.experiment), to_json(three.experiment));
  EXPECT_EQ(one.steps, three.steps);
}

TEST(Shrink, ABudgetEndsItWithWhatItHas) {
  const Experiment experiment = planted("planted_always");
  ShrinkOptions options;
  options.budget = 3;
  int told = 0;
  options.accepted = [&](const Reduction&, int) { ++told; };
  const Shrunk shrunk = shrink(experiment, observe(experiment).signature, signatures, options);
  EXPECT_FALSE(shrunk.canonical);
  EXPECT_LE(shrunk.runs, 3 + options.at_once);
  EXPECT_EQ(told, shrunk.steps);
}

// On many generated cases: each reduction is another one, and a case that can be read.
TEST(Reductions, AreValidAndDifferent) {
  const Sources sources =
      read_sources("core/plan/testdata", "core/order/testdata/schedules.jsonl", "", block_names());
  std::size_t count = 0;
  for (std::uint64_t index = 0; index < 40; ++index) {
    const Generated generated = generate(sources, case_seed(9, index));
    if (generated.skipped || generated.value.plan.slots.size() > 64) continue;
    const Experiment experiment{generated.value};
    for (const Reduction& reduction : reductions(experiment)) {
      ++count;
      const nlohmann::json json = to_json(reduction.experiment);
      EXPECT_NE(json, to_json(experiment)) << reduction.what;
      EXPECT_EQ(to_json(experiment_from_json(JsonReader(json, reduction.what))), json);
    }
  }
  fmt::print("{} reductions\n", count);
  EXPECT_GT(count, 300u);
}

// Faults become one, early and transient.
TEST(Reductions, OfInjections) {
  Experiment experiment{reference_case(),
                        Injection{{"owner_detach", "switch_pool"}, 7, Fault::kPersistent, 3},
                        Mode::kCheckpoint};
  // The kind of fault is no part of it, or it could not be dropped.
  const std::string signature =
      observation_of(experiment.mode, *experiment.injection, {"state: x"}).signature;
  // Fails as long as the point fires at its second call or later.
  const Judge judge = [](const std::vector<Experiment>& all) {
    std::vector<std::string> result;
    for (const Experiment& one : all) {
      const bool fails = one.injection->nth >= 2;
      result.push_back(observation_of(one.mode, *one.injection,
                                      fails ? std::vector<std::string>{"state: other"}
                                            : std::vector<std::string>{})
                           .signature);
    }
    return result;
  };
  const Shrunk shrunk = shrink(experiment, signature, judge, {});
  EXPECT_EQ(*shrunk.experiment.injection,
            (Injection{{"owner_detach", "switch_pool"}, 2, Fault::kOnce, 0}));
  EXPECT_EQ(shrunk.experiment.value.plan.layers(), 1);
  EXPECT_TRUE(shrunk.canonical);
}

TEST(Signatures, LeaveNumbersOut) {
  EXPECT_EQ(without_numbers("output 3 at 0x7f00a of 12 bytes"), "output # at # of # bytes");
  Record record;
  record.verdict = Verdict::kViolated;
  record.findings = {
      {"equality", "arena", "step 1, microbatch 2, chunk 0, layer 1, output 0 when returned", "x"}};
  EXPECT_EQ(observation_of(record).signature, "equality, arena, output # when returned");
  record.findings = {
      {"error", "all", "exception", "[K09] owners of captured memory: found 3 blocks"}};
  EXPECT_EQ(observation_of(record).signature, "error, all, [K09]");
}

}  // namespace
}  // namespace slotgraph::fuzz

#include "fuzz/generate/generate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/models/blocks.h"

namespace slotgraph::fuzz {
namespace {

const Sources& all() {
  static const Sources& sources = *new Sources(
      read_sources("core/plan/testdata", "core/order/testdata/schedules.jsonl", "", block_names()));
  return sources;
}

TEST(Fit, TakesPositionsAmongDistinctSizesClippedAndCut) {
  Plan plan;
  plan.cp_sizes = {2, 1};
  plan.covered_counts = {2, 4};
  EXPECT_EQ(fit({"", {8, 2, 8, 1, 8}}, plan), (std::vector<int>{0, 1, 0, 1}))
      << "1 is third, clipped to the last variant";
  EXPECT_EQ(fit({"", {1, 1, 1}}, plan), (std::vector<int>{0, 0}));
  EXPECT_TRUE(fit({"", {1}}, plan).empty());
}

// 200 schedules of the public scheduler; every one is a list of powers of two.
TEST(Sources, ReadEveryPublicPlanAndSchedule) {
  EXPECT_EQ(all().plans.size(), 103u) << "one rank of the 104 has no layers";
  EXPECT_EQ(all().schedules.size(), 200u);
  EXPECT_EQ(all().schedules.front().cp_sizes.empty(), false);
  EXPECT_THROW(read_sources("core/plan/testdata", "core/order/testdata/schedules.jsonl",
                            "no such plan", block_names()),
               Error);
}

// The same batches, scheduled anew: other cases of the same campaign.
TEST(Sources, BalancedSchedulesAreOthers) {
  const Sources balanced = read_sources("core/plan/testdata", "core/order/testdata/schedules.jsonl",
                                        "", block_names(), Scheduler::kBalanced);
  ASSERT_EQ(balanced.schedules.size(), all().schedules.size());
  std::size_t differ = 0, aligned = 0;
  for (std::size_t i = 0; i < balanced.schedules.size(); ++i) {
    EXPECT_EQ(balanced.schedules[i].name, all().schedules[i].name + " balanced");
    differ += balanced.schedules[i].cp_sizes != all().schedules[i].cp_sizes;
    aligned += !balanced.schedules[i].cp_sizes.empty();
  }
  EXPECT_GT(differ, 100u);
  EXPECT_EQ(aligned, 200u);
  std::size_t other_cases = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t seed = case_seed(1, i);
    other_cases += digest(generate(balanced, seed).value) != digest(generate(all(), seed).value);
  }
  EXPECT_GT(other_cases, 5u);
  EXPECT_LT(other_cases, 40u) << "adversarial schedules are what they were";
}

TEST(Generate, CasesDependOnSeedAndIndexOnly) {
  const std::string early = digest(generate(all(), case_seed(1, 17)).value);
  for (std::uint64_t i = 0; i < 5; ++i) generate(all(), case_seed(1, i));
  EXPECT_EQ(digest(generate(all(), case_seed(1, 17)).value), early);
  EXPECT_NE(digest(generate(all(), case_seed(2, 17)).value), early);
  // Pinned: another digest means that every published seed names another case.
  EXPECT_EQ(digest(generate(all(), case_seed(1, 0)).value).substr(0, 16), "60213a10722f1819");
}

TEST(GenerateLarge, EightShapesOfGpuSizesThatServeManySchedules) {
  std::set<std::string> shapes;
  std::map<std::string, int> count;
  const std::uint64_t cases = 2 * kLargeBlock * kLargeShapes;
  for (std::uint64_t i = 0; i < cases; ++i) {
    const Generated generated = generate_large(all(), 1, i);
    Case value = generated.value;
    EXPECT_FALSE(generated.skipped);
    EXPECT_GE(value.hidden, 1024);
    EXPECT_LE(value.hidden, 4096);
    EXPECT_LE(*std::max_element(value.tokens.begin(), value.tokens.end()), 512);
    for (const int layers : value.plan.layers_per_chunk) EXPECT_LE(layers, 2);
    ++count[value.dtype];
    ++count[value.schedule.source == "adversarial" ? "adversarial" : "public"];
    ++count[value.equal_tokens() ? "equal tokens" : "different tokens"];
    count["wide"] += value.hidden > 1024;
    count["mixed and wrapped"] += value.mixes() && value.wraps();
    count["microbatches"] += static_cast<int>(value.schedule.variants.size());
    const nlohmann::json json = to_json(value);
    EXPECT_EQ(to_json(case_from_json(JsonReader(json, "case"))), json);
    value.schedule = {};
    shapes.insert(to_json(value).dump());
  }
  for (const auto& [name, n] : count) fmt::print("{:<20} {}\n", name, n);
  EXPECT_EQ(shapes.size(), kLargeShapes);
  EXPECT_GT(count["mixed and wrapped"], static_cast<int>(cases * 3 / 10));
  EXPECT_GT(count["microbatches"], static_cast<int>(cases * 8));
  EXPECT_GT(count["wide"], static_cast<int>(cases / 10));
}

TEST(Generate, EveryCaseReadsBackFromItsJson) {
  for (std::uint64_t i = 0; i < 60; ++i) {
    const Generated generated = generate(all(), case_seed(3, i));
    if (generated.skipped) continue;
    const nlohmann::json json = to_json(generated.value);
    EXPECT_EQ(to_json(case_from_json(JsonReader(json, "case"))), json);
  }
}

// Faults of sharing need a ring that wraps and variants that mix: at least 30 % of a default
// campaign do both.
TEST(Generate, DistributionCoversTheCorners) {
  std::map<std::string, int> count;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Generated generated = generate(all(), case_seed(1, i));
    if (generated.skipped) {
      ++count["skipped"];
      continue;
    }
    const Case& value = generated.value;
    ++count["executed"];
    count["wrapped"] += value.wraps();
    count["mixed"] += value.mixes();
    count["both"] += value.wraps() && value.mixes();
    count["equal tokens"] += value.equal_tokens();
    count["adversarial"] += value.schedule.source == "adversarial";
    ++count[value.dtype];
    ++count[value.addresses];
    count["partial backward"] += value.partial_backward;
    count["shadow"] += value.shadow;
    for (const Mode mode : value.modes) ++count["mode " + to_string(mode)];
    for (const LayerCase& layer : value.layers) {
      ++count["block " + layer.block];
      ++count["trainable " + layer.trainable];
      count["aliased inputs"] += layer.aliased_inputs;
    }
    const bool must = value.schedule.source == "adversarial" && value.plan.variants() > 1 &&
                      value.plan.ring_length > 1;
    EXPECT_TRUE(value.mixes() || !must) << i;
  }
  for (const auto& [name, number] : count) fmt::print("{:<22}{:>6}\n", name, number);
  EXPECT_GT(count["both"], count["executed"] * 3 / 10);
  for (const std::string& block : all().blocks) EXPECT_GT(count["block " + block], 0) << block;
}

}  // namespace
}  // namespace slotgraph::fuzz

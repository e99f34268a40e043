// check() and an independent reading of its rules must decide alike.
#include "core/testing/decision_oracle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/testing/random_plans.h"

namespace slotgraph::testing {
namespace {

constexpr int kCases = 60'000;

template <typename Value>
std::string checked(const Value& value) {
  try {
    check(value);
  } catch (const Error& error) {
    return error.rule();
  }
  return "";
}

bool agree(const Plan& plan, const std::string& decided, const std::string& found) {
  if (decided == found) return true;
  static const std::set<std::string> liveness{"PL14", "PL04", "PL05"};
  return liveness.contains(decided) && liveness_violations(plan).contains(found);
}

bool agree(const CaptureCall&, const std::string& decided, const std::string& found) {
  return decided == found;
}

struct Distribution {
  std::map<int, int> by_violations;
  std::map<std::string, int> by_rule;               // "" is accepted
  std::vector<std::set<std::string>> of_violation;  // rules that each one alone broke
};

// Cases with 0, 1 and 2 violations; seed and case number are one.
template <typename Value>
Distribution compare(Value (*make)(Random&), std::span<const Violation<Value>> violations) {
  Distribution distribution;
  distribution.of_violation.resize(violations.size());
  for (int seed = 0; seed < kCases; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    Value value = make(random);
    const int number = random.below(3);
    std::vector<int> applied;
    for (int i = 0; i < number; ++i) {
      applied.push_back(random.below(static_cast<int>(violations.size())));
      violations[applied.back()].apply(random, value);
    }
    const std::string found = checked(value), decided = decide(value);
    EXPECT_TRUE(agree(value, decided, found)) << fmt::format(
        "seed {}, violations {}: check says `{}`, the oracle `{}`", seed, applied, found, decided);
    EXPECT_TRUE(number > 0 || found.empty()) << "seed " << seed << ": " << found;
    ++distribution.by_violations[number];
    ++distribution.by_rule[decided];
    if (number == 1) distribution.of_violation[applied[0]].insert(decided);
  }
  return distribution;
}

template <typename Value>
void expect_all(const Distribution& distribution, std::span<const Violation<Value>> violations,
                const std::set<std::string>& rules) {
  for (const auto& [number, cases] : distribution.by_violations)
    fmt::print("{:6} cases with {} violations\n", cases, number);
  std::set<std::string> seen;
  for (const auto& [rule, cases] : distribution.by_rule) {
    fmt::print("{:6} {}\n", cases, rule.empty() ? "accepted" : rule);
    seen.insert(rule);
  }
  EXPECT_EQ(seen, rules);
  for (std::size_t i = 0; i < violations.size(); ++i) {
    const std::string rule = violations[i].rule;
    EXPECT_TRUE(rule.empty() || distribution.of_violation[i].contains(rule))
        << "violation " << i << ", " << rule;
  }
}

TEST(DecisionOracle, AgreesOnPlans) {
  const Distribution distribution = compare(random_plan, plan_violations());
  expect_all(distribution, plan_violations(),
             {"", "PL00", "OP1", "OP2", "PL01", "PL09", "PL13", "PL08", "PL02", "PL03", "PL06",
              "OR1", "OR2", "PL14", "PL04", "PL05"});
}

TEST(DecisionOracle, AgreesOnCaptureCalls) {
  const Distribution distribution = compare(random_call, call_violations());
  expect_all(
      distribution, call_violations(),
      {"",    "OR1", "C01", "C02", "C03", "C04", "C05", "C06", "C07", "C11", "C12", "OP5", "C15",
       "C16", "C18", "C19", "C20", "C21", "C23", "OR2", "C24", "C25", "W11", "L02", "K09a"});
}

}  // namespace
}  // namespace slotgraph::testing

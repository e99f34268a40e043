#include "core/record/verdict.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/record/record.h"

namespace slotgraph {
namespace {

// Every value of the type that has a name is in the list from which everything else is derived.
TEST(Verdicts, TheListHasThemAll) {
  std::set<std::string> named;
  for (int i = 0; i < 100; ++i) {
    const std::string name = to_string(static_cast<Verdict>(i));
    if (!name.empty()) named.insert(name);
  }
  std::set<std::string> listed;
  for (const Verdict verdict : kVerdicts) listed.insert(to_string(verdict));
  EXPECT_EQ(named, listed);
  EXPECT_EQ(listed.size(), kVerdicts.size()) << "names are different";
}

TEST(Verdicts, EachReadsBackInARecordAndIsCounted) {
  for (const Verdict verdict : kVerdicts) {
    SCOPED_TRACE(to_string(verdict));
    Record record;
    record.verdict = verdict;
    EXPECT_EQ(record_from_json(to_json(record), "record").verdict, verdict);
    Summary summary;
    summary.add(record);
    EXPECT_EQ(summary.count.all(), 1u);
    EXPECT_EQ(summary.count[verdict], 1u);
    EXPECT_EQ(to_json(summary)["verdicts"].size(), kVerdicts.size());
    EXPECT_EQ(to_json(summary)["verdicts"][to_string(verdict)], 1);
    EXPECT_EQ(exit_code_of(summary), exit_code_of(verdict));
    EXPECT_EQ(exit_code_of(summary) == kHolds, verdict == Verdict::kHolds);
    record.skipped = true;
    Summary skipped;
    skipped.add(record);
    EXPECT_EQ(skipped.count.all(), 0u);
    EXPECT_EQ(exit_code_of(skipped), kUnknown) << "nothing ran";
  }
  nlohmann::json json = to_json(Record());
  json["verdict"] = "fine";
  try {
    (void)record_from_json(json, "record");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.rule(), "J04");
    for (const Verdict verdict : kVerdicts)
      EXPECT_NE(std::string(error.what()).find(to_string(verdict)), std::string::npos);
  }
}

// What is not known never hides a violation, and nothing hides what makes the others meaningless.
TEST(ExitCodes, TheWorseOneWins) {
  const std::vector<ExitCode> order{kInternal,  kInputOutput, kUsage, kViolated,
                                    kUnknown, kStopped,     kHolds};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i; j < order.size(); ++j) {
      EXPECT_EQ(worse(order[i], order[j]), order[i]);
      EXPECT_EQ(worse(order[j], order[i]), order[i]);
    }
  }
  VerdictCounts both;
  both.add(Verdict::kUnknown);
  both.add(Verdict::kFlaky);
  both.add(Verdict::kHolds);
  EXPECT_EQ(exit_code_of(both), kViolated);
  EXPECT_EQ(to_string(both), "1 holds, 0 violated, 1 flaky, 1 unknown");
}

}  // namespace
}  // namespace slotgraph

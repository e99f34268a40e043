#include "reports/render.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "core/files.h"

namespace slotgraph::reports {
namespace {

std::vector<Record> sample() {
  Record holds;
  holds.index = 3;
  holds.plan = "p2v2n2-l1-k2.r0";
  holds.schedule = "adversarial";
  holds.wrapped = holds.mixed = true;
  holds.verdict = Verdict::kHolds;
  holds.counters.tensors_compared = 7;
  Record violated = holds;
  violated.index = 1;
  violated.verdict = Verdict::kViolated;
  violated.findings = {
      {"equality", "placement", "step 0 <microbatch> 1", "byte 4: found 0x01 | expected 0x00"}};
  violated.case_file = "/out/cases/1-1.json";
  Record unknown = holds;
  unknown.index = 2;
  unknown.plan = "p4-l1-k1.r0";
  unknown.verdict = Verdict::kUnknown;
  unknown.findings = {{"worker", "all", "process", "ended with code 139"}};
  unknown.case_file = "/out/cases/1-2.json";
  Record skipped;
  skipped.index = 0;
  skipped.plan = "p4-l1-k1.r0";
  skipped.schedule = "pareto 4";
  skipped.skipped = true;
  return {holds, violated, unknown, skipped};
}

std::string golden(const std::string& name) {
  std::ifstream file("reports/testdata/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// To accept a change: SLOTGRAPH_ACCEPT=$PWD/reports/testdata bazel run //reports:render_test
TEST(Render, EqualsTheApprovedFiles) {
  if (const char* const folder = std::getenv("SLOTGRAPH_ACCEPT")) {
    write_file(std::string(folder) + "/junit.xml", junit(sample()));
    write_file(std::string(folder) + "/summary.md", markdown(sample()));
  }
  EXPECT_EQ(junit(sample()), golden("junit.xml")) << junit(sample());
  EXPECT_EQ(markdown(sample()), golden("summary.md")) << markdown(sample());
}

TEST(Render, OrderOfRecordsDoesNotMatter) {
  auto records = sample();
  std::reverse(records.begin(), records.end());
  EXPECT_EQ(junit(records), junit(sample()));
  EXPECT_EQ(markdown(records), markdown(sample()));
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

// A campaign whose only failures are of one kind: title, totals and what JUnit counts say so.
TEST(Render, NoVerdictIsForgotten) {
  for (const Verdict verdict : kVerdicts) {
    SCOPED_TRACE(to_string(verdict));
    std::vector<Record> records = sample();
    std::erase_if(records, [](const Record& record) { return record.verdict != Verdict::kHolds; });
    records.push_back(sample()[1]);
    records.back().verdict = verdict;
    const bool holds = verdict == Verdict::kHolds;
    const std::string page = markdown(records);
    EXPECT_EQ(times(page, "# Slot-graph campaign: holds"), holds ? 1u : 0u) << page;
    EXPECT_EQ(times(page, "### Case 1: " + to_string(verdict)), holds ? 0u : 1u) << page;
    EXPECT_EQ(times(page, "| " + to_string(verdict) + " | " + (holds ? "2" : "1") + " |"), 1u);
    EXPECT_EQ(times(page, " " + to_string(verdict) + " |"), 2u) << "totals, and a column of plans";
    const std::string xml = junit(records);
    const std::size_t failures = times(xml, "<failure "), errors = times(xml, "<error ");
    EXPECT_EQ(failures + errors, holds ? 0u : 1u);
    EXPECT_EQ(times(xml, "failures=\"" + std::to_string(failures) + "\""), 1u) << xml;
    EXPECT_EQ(times(xml, "errors=\"" + std::to_string(errors) + "\""), 1u) << xml;
    EXPECT_EQ(times(xml, "type=\"" + to_string(verdict) + "\""), holds ? 0u : 1u) << xml;
  }
}

TEST(Render, NoRecordsDoNotHold) {
  EXPECT_NE(markdown({}).find("does not hold"), std::string::npos);
}

TEST(Records, RoundTripThroughAFileAndNameTheBadLine) {
  const std::string path = ::testing::TempDir() + "/records.jsonl";
  {
    LineFile file(path);
    for (const Record& record : sample()) file.append(to_json(record).dump());
  }
  const auto records = read_records(path);
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(to_json(records[1]), to_json(sample()[1]));
  std::ofstream(path, std::ios::app) << "{\"schema\": 1, \"ind";
  try {
    read_records(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.rule(), "J02");
    EXPECT_NE(std::string(error.what()).find("records.jsonl:5"), std::string::npos) << error.what();
  }
}

TEST(Files, AFileThatCannotBeWrittenIsAbsentAfterwards) {
  const std::string folder = ::testing::TempDir() + "/occupied";
  std::filesystem::create_directories(folder + "/target/inside");
  EXPECT_THROW(write_file(folder + "/target", "x"), Error) << "a folder is in the way";
  EXPECT_FALSE(std::filesystem::exists(folder + "/target.part"));
  EXPECT_THROW(LineFile("/proc/no/such/folder/records.jsonl"), Error);
}

TEST(Files, AFullDiskTakesTheLineBack) {
  LineFile full("/dev/full");
  EXPECT_THROW(full.append("line"), Error);
}

}  // namespace
}  // namespace slotgraph::reports

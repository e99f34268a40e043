#include "reports/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <sstream>
#include <string_view>
#include <tuple>

namespace slotgraph::reports {
namespace {

void sort(std::vector<Record>& records) {
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return std::tie(a.index, a.case_seed, a.case_digest) <
           std::tie(b.index, b.case_seed, b.case_digest);
  });
}

std::string describe(const Finding& finding) {
  return fmt::format("{}, {}: {}: {}", finding.property, finding.execution, finding.where,
                     finding.what);
}

std::string reproduce(const Record& record) {
  return "bazel run //:campaign -- --case " + record.case_file;
}

// Text that cannot break a Markdown table or start a tag.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += ' ';
    } else if (c == '<') {
      result += "&lt;";
    } else {
      if (c == '|' || c == '*' || c == '_' || c == '`') result += '\\';
      result += c;
    }
  }
  return result;
}

std::string totals(const Summary& summary) {
  std::string text = "| | |\n|---|---:|\n";
  for (const Verdict verdict : kVerdicts)
    text += fmt::format("| {} | {} |\n", to_string(verdict), summary.count[verdict]);
  text += fmt::format(
      "| skipped | {} |\n| wrap the ring | {} |\n| mix variants | {} |\n| both | {} |\n"
      "| equal tokens in all variants | {} |\n",
      summary.skipped, summary.wrapped, summary.mixed, summary.mixed_and_wrapped,
      summary.equal_tokens);
  Counters counters = summary.counters;
  for (std::size_t i = 0; i < Counters::kNames.size(); ++i) {
    text += fmt::format("| {} | {} |\n", escaped(Counters::kNames[i]), *counters.fields()[i]);
  }
  return text;
}

// What JUnit calls it; of a case that holds nothing is written.
const char* junit_element(Verdict verdict) {
  const ExitCode code = exit_code_of(verdict);
  return code == kHolds ? nullptr : code == kViolated ? "failure" : "error";
}

// How many cases get that element.
unsigned long long count_of(const Summary& summary, std::string_view element) {
  unsigned long long count = 0;
  for (const Verdict verdict : kVerdicts) {
    const char* const name = junit_element(verdict);
    if (name != nullptr && element == name) count += summary.count[verdict];
  }
  return count;
}

}  // namespace

std::string junit(std::vector<Record> records) {
  sort(records);
  Summary summary;
  for (const Record& record : records) summary.add(record);
  pugi::xml_document document;
  pugi::xml_node suites = document.append_child("testsuites");
  pugi::xml_node suite = suites.append_child("testsuite");
  suite.append_attribute("name") = "slotgraph campaign";
  suite.append_attribute("tests") = static_cast<unsigned long long>(records.size());
  suite.append_attribute("failures") = count_of(summary, "failure");
  suite.append_attribute("errors") = count_of(summary, "error");
  suite.append_attribute("skipped") = static_cast<unsigned long long>(summary.skipped);
  for (const Record& record : records) {
    pugi::xml_node test = suite.append_child("testcase");
    test.append_attribute("classname") = record.plan.c_str();
    test.append_attribute("name") =
        fmt::format("case {} ({})", record.index, record.schedule).c_str();
    if (record.skipped) {
      test.append_child("skipped").append_attribute("message") =
          "the schedule does not fit the plan";
      continue;
    }
    const char* const element = junit_element(record.verdict);
    if (element == nullptr) continue;
    pugi::xml_node problem = test.append_child(element);
    problem.append_attribute("type") = to_string(record.verdict).c_str();
    problem.append_attribute("message") =
        record.findings.empty() ? "" : describe(record.findings.front()).c_str();
    std::string text;
    for (const Finding& finding : record.findings) text += describe(finding) + "\n";
    problem.append_child(pugi::node_pcdata).set_value((text + reproduce(record) + "\n").c_str());
  }
  std::ostringstream out;
  document.save(out, "  ");
  return out.str();
}

std::string markdown(std::vector<Record> records) {
  sort(records);
  Summary summary;
  std::map<std::string, Summary> plans;
  for (const Record& record : records) {
    summary.add(record);
    plans[record.plan].add(record);
  }
  const bool holds = exit_code_of(summary) == kHolds;
  std::string text = fmt::format("# Slot-graph campaign: {}\n\n{} cases\n\n",
                                 holds ? "holds" : "does not hold", summary.cases);
  text += totals(summary);
  if (!holds) text += "\n## What does not hold\n";
  for (const Record& record : records) {
    if (record.skipped || record.verdict == Verdict::kHolds) continue;
    text += fmt::format("\n### Case {}: {}\n\nplan {}, schedule {}\n\n", record.index,
                        to_string(record.verdict), escaped(record.plan), escaped(record.schedule));
    for (const Finding& finding : record.findings) text += "* " + escaped(describe(finding)) + "\n";
    text += "\n```\n" + reproduce(record) + "\n```\n";
  }
  text += "\n## Plans\n\n| plan | cases |";
  std::string rule = "|---|---:|";
  for (const Verdict verdict : kVerdicts) {
    text += " " + to_string(verdict) + " |";
    rule += "---:|";
  }
  text += " skipped | slot pool bytes | native pool bytes |\n" + rule + "---:|---:|---:|\n";
  for (const auto& [name, plan] : plans) {
    text += fmt::format("| {} | {} |", escaped(name), plan.cases);
    for (const Verdict verdict : kVerdicts) text += fmt::format(" {} |", plan.count[verdict]);
    text += fmt::format(" {} | {} | {} |\n", plan.skipped, plan.counters.pool_bytes_slot,
                        plan.counters.pool_bytes_native);
  }
  return text;
}

}  // namespace slotgraph::reports

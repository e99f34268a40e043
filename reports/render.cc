#include "reports/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <sstream>
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
  return "bazel run //fuzz:campaign -- --case " + record.case_file;
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
  std::string text = fmt::format(
      "| | |\n|---|---:|\n| holds | {} |\n| violated | {} |\n| unknown | {} |\n| skipped | {} |\n"
      "| wrap the ring | {} |\n| mix variants | {} |\n| both | {} |\n| equal tokens in all "
      "variants | {} |\n",
      summary.holds, summary.violated, summary.unknown, summary.skipped, summary.wrapped,
      summary.mixed, summary.mixed_and_wrapped, summary.equal_tokens);
  Counters counters = summary.counters;
  for (std::size_t i = 0; i < Counters::kNames.size(); ++i) {
    text += fmt::format("| {} | {} |\n", escaped(Counters::kNames[i]), *counters.fields()[i]);
  }
  return text;
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
  suite.append_attribute("failures") = static_cast<unsigned long long>(summary.violated);
  suite.append_attribute("errors") = static_cast<unsigned long long>(summary.unknown);
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
    if (record.verdict == Verdict::kHolds) continue;
    pugi::xml_node problem =
        test.append_child(record.verdict == Verdict::kViolated ? "failure" : "error");
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
  const bool holds = summary.violated == 0 && summary.unknown == 0 && summary.cases > 0;
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
  text +=
      "\n## Plans\n\n| plan | cases | holds | violated | unknown | skipped | slot pool bytes | "
      "native pool bytes |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const auto& [name, plan] : plans) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", escaped(name), plan.cases,
                        plan.holds, plan.violated, plan.unknown, plan.skipped,
                        plan.counters.pool_bytes_slot, plan.counters.pool_bytes_native);
  }
  return text;
}

}  // namespace slotgraph::reports

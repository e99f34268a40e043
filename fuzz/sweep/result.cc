#include "fuzz/sweep/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <set>

#include "core/error.h"
#include "core/exit_code.h"
#include "fuzz/sweep/sweep.h"

namespace slotgraph::fuzz {
namespace {

constexpr std::array kOutcomeNames = {"not_reached", "recovered", "absorbed", "upstream_fatal",
                                      "fatal",       "sticky",    "died",     "hung"};

constexpr int kAborted = 128 + 6;

constexpr const char* kTerminate = "terminate called";
constexpr const char* kFatal = "slotgraph: fatal:";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

std::string to_string(Outcome outcome) { return kOutcomeNames[static_cast<std::size_t>(outcome)]; }

nlohmann::json to_json(const Result& result) {
  nlohmann::json json{{"mode", result.mode},
                      {"injection", to_json(result.injection)},
                      {"outcome", to_string(result.outcome)},
                      {"verdict", to_string(result.verdict)},
                      {"error", result.error},
                      {"findings", result.findings}};
  const bool worth = result.verdict != Verdict::kHolds || result.outcome == Outcome::kUpstreamFatal;
  if (worth) json["stack"] = result.stack;
  if (!result.folder.empty()) json["folder"] = result.folder;
  return json;
}

FatalTable FatalTable::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error({"F04", path, "no such file", "the table of upstream-fatal points", ""});
  FatalTable table;
  std::string line;
  std::getline(file, line);  // heads
  for (int number = 2; std::getline(file, line); ++number) {
    const std::size_t first = line.find(',');
    const std::size_t second = first == std::string::npos ? first : line.find(',', first + 1);
    if (second == std::string::npos)
      throw Error(
          {"F05", fmt::format("{}:{}", path, number), "`" + line + "`", "call,frame,why", ""});
    table.rows_.push_back({line.substr(0, first), line.substr(first + 1, second - first - 1)});
  }
  return table;
}

std::string FatalTable::find(const std::vector<std::string>& stack) const {
  for (const Row& row : rows_) {
    const auto inside = [&](const std::string& frame) {
      return frame.find(row.frame) != std::string::npos;
    };
    if (!stack.empty() && row.call == stack.front() &&
        std::any_of(stack.begin(), stack.end(), inside))
      return row.frame;
  }
  return "";
}

std::string kind_of_end(const End& end, const FatalTable& table) {
  const bool terminated = end.code == kAborted && contains(end.errors, kTerminate);
  const std::string row = terminated ? table.find(end.stack) : "";
  if (!row.empty()) return fmt::format("code {}, upstream: {}", end.code, row);
  for (const char* const sign : {kTerminate, kFatal}) {
    if (const std::size_t begin = end.errors.find(sign); begin != std::string::npos)
      return fmt::format("code {}, {}", end.code,
                         without_numbers(first_line(end.errors.substr(begin))));
  }
  return fmt::format("code {}", end.code);
}

Result judge_end(const std::string& mode, const Injection& injection, const End& end,
                 const FatalTable& table) {
  Result result;
  result.mode = mode;
  result.injection = injection;
  result.fired = end.fired;
  result.stack = end.stack;
  result.error = kind_of_end(end, table);
  result.outcome = Outcome::kDied;
  result.verdict = Verdict::kViolated;
  if (injection.fault == Fault::kSticky && end.fired > 0) {
    result.outcome = Outcome::kSticky;
    result.verdict = Verdict::kHolds;
  } else if (end.code == kInternal && contains(end.errors, kFatal)) {
    result.outcome = Outcome::kFatal;
    if (end.fired > 1) result.verdict = Verdict::kHolds;
  } else if (contains(result.error, ", upstream: ")) {
    result.outcome = Outcome::kUpstreamFatal;
    result.verdict = Verdict::kHolds;
  }
  if (result.verdict == Verdict::kViolated)
    result.findings.push_back("process: it ended: " + result.error);
  return result;
}

std::string without_numbers(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool hexadecimal = text.compare(i, 2, "0x") == 0;
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) {
      result += text[i];
      continue;
    }
    if (hexadecimal) ++i;
    const auto part = [&](char c) {
      const auto letter = static_cast<unsigned char>(c);
      return (hexadecimal ? std::isxdigit(letter) : std::isdigit(letter)) != 0;
    };
    while (i + 1 < text.size() && part(text[i + 1])) ++i;
    result += '#';
  }
  return result;
}

nlohmann::json to_json(const SweepSummary& summary) {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [mode, points] : summary.rows) {
    for (const auto& [point, row] : points) {
      nlohmann::json outcomes = nlohmann::json::object();
      for (const auto& [outcome, count] : row.outcomes) outcomes[to_string(outcome)] = count;
      rows.push_back({{"mode", mode},
                      {"phase", point.phase},
                      {"point", point.name},
                      {"classes", row.classes},
                      {"calls", row.calls},
                      {"runs", row.runs},
                      {"violated", row.violated},
                      {"outcomes", outcomes}});
    }
  }
  return {{"fault_points", summary.fault_points},
          {"points_reached", summary.points_reached},
          {"runs", summary.runs},
          {"complete", summary.complete()},
          {"cut", summary.cut},
          {"verdicts", summary.verdicts},
          {"outcomes", summary.outcomes},
          {"table", rows}};
}

std::string table_of(const SweepSummary& summary) {
  std::set<std::pair<std::string, std::string>> lines;  // phase, point
  for (const auto& [mode, points] : summary.rows)
    for (const auto& [point, row] : points) lines.insert({point.phase, point.name});
  std::string text = fmt::format("{:<18}{:<32}", "phase", "point");
  for (const auto& [mode, points] : summary.rows) text += fmt::format("{:>26}", mode);
  text += fmt::format("\n{:<50}", "");
  for (std::size_t i = 0; i < summary.rows.size(); ++i)
    text += fmt::format("{:>26}", "classes runs thrown ended");
  text += "\n";
  for (const auto& [phase, name] : lines) {
    text += fmt::format("{:<18}{:<32}", phase, name);
    for (const auto& [mode, points] : summary.rows) {
      const auto it = points.find({name, phase});
      if (it == points.end()) {
        text += fmt::format("{:>26}", "-");
        continue;
      }
      auto outcomes = it->second.outcomes;
      const auto ended = outcomes[Outcome::kUpstreamFatal] + outcomes[Outcome::kFatal] +
                         outcomes[Outcome::kSticky] + outcomes[Outcome::kDied];
      text += fmt::format("{:>26}", fmt::format("{} {} {} {}{}", it->second.classes,
                                                it->second.runs, outcomes[Outcome::kRecovered],
                                                ended, it->second.violated > 0 ? " !" : ""));
    }
    text += "\n";
  }
  return text;
}

}  // namespace slotgraph::fuzz

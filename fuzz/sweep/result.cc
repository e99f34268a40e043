#include "fuzz/sweep/result.h"

#include <fmt/format.h>

#include <array>
#include <set>

namespace slotgraph::fuzz {
namespace {

constexpr std::array kOutcomeNames = {"not_reached", "recovered", "absorbed", "upstream_fatal",
                                      "fatal",       "sticky",    "died",     "hung"};

}  // namespace

std::string to_string(TrialOutcome outcome) {
  return kOutcomeNames[static_cast<std::size_t>(outcome)];
}

nlohmann::json to_json(const Result& result) {
  nlohmann::json json{{"mode", to_string(result.mode)},
                      {"injection", to_json(result.injection)},
                      {"outcome", to_string(result.outcome)},
                      {"verdict", to_string(result.verdict)},
                      {"error", result.error},
                      {"findings", result.findings}};
  const bool worth =
      result.verdict != Verdict::kHolds || result.outcome == TrialOutcome::kUpstreamFatal;
  if (worth) json["stack"] = result.stack;
  if (!result.folder.empty()) json["folder"] = result.folder;
  return json;
}

Result judge_end(Mode mode, const Injection& injection, const End& end, const FatalTable& table) {
  Result result;
  result.mode = mode;
  result.injection = injection;
  result.fired = end.fired;
  result.stack = end.stack;
  result.error = kind_of_end(end, table);
  result.outcome = TrialOutcome::kDied;
  result.verdict = Verdict::kViolated;
  if (traits(injection.fault).loses_device && end.fired > 0) {
    result.outcome = TrialOutcome::kSticky;
    result.verdict = Verdict::kHolds;
  } else if (end.is_fatal()) {
    result.outcome = TrialOutcome::kFatal;
    if (end.fired > 1) result.verdict = Verdict::kHolds;
  } else if (is_upstream(result.error)) {
    result.outcome = TrialOutcome::kUpstreamFatal;
    result.verdict = Verdict::kHolds;
  }
  if (result.verdict == Verdict::kViolated)
    result.findings.push_back("process: it ended: " + result.error);
  return result;
}

nlohmann::json to_json(const SweepSummary& summary) {
  nlohmann::json outcomes = nlohmann::json::object();
  for (const auto& [outcome, count] : summary.outcomes) outcomes[to_string(outcome)] = count;
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
  return {{"fault_points", summary.totals.fault_points},
          {"points_reached", summary.totals.points_reached},
          {"runs", summary.runs},
          {"complete", summary.totals.complete()},
          {"cut", summary.totals.cut},
          {"verdicts", to_json(summary.verdicts)},
          {"outcomes", outcomes},
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
      const auto ended = outcomes[TrialOutcome::kUpstreamFatal] + outcomes[TrialOutcome::kFatal] +
                         outcomes[TrialOutcome::kSticky] + outcomes[TrialOutcome::kDied];
      text += fmt::format("{:>26}", fmt::format("{} {} {} {}{}", it->second.classes,
                                                it->second.runs, outcomes[TrialOutcome::kRecovered],
                                                ended, it->second.violated > 0 ? " !" : ""));
    }
    text += "\n";
  }
  return text;
}

}  // namespace slotgraph::fuzz

#include "core/record/verdict.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

namespace slotgraph {

// Without a default: the compiler asks for a new verdict here.
std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds:
      return "holds";
    case Verdict::kViolated:
      return "violated";
    case Verdict::kFlaky:
      return "flaky";
    case Verdict::kUnknown:
      return "unknown";
  }
  return "";
}

ExitCode exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds:
      return kHolds;
    case Verdict::kViolated:
    case Verdict::kFlaky:
      return kViolated;
    case Verdict::kUnknown:
      return kUnknown;
  }
  return kInternal;
}

Verdict verdict_from_json(const JsonReader& reader) {
  std::vector<std::string> names;
  for (const Verdict verdict : kVerdicts) names.push_back(to_string(verdict));
  const std::string name = reader.choice(names);
  std::size_t i = 0;
  while (names[i] != name) ++i;
  return kVerdicts[i];
}

std::uint64_t VerdictCounts::all() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

ExitCode exit_code_of(const VerdictCounts& counts) {
  if (counts.all() == 0) return kUnknown;
  ExitCode code = kHolds;
  for (const Verdict verdict : kVerdicts) {
    if (counts[verdict] > 0) code = worse(code, exit_code_of(verdict));
  }
  return code;
}

nlohmann::json to_json(const VerdictCounts& counts) {
  nlohmann::json json;
  for (const Verdict verdict : kVerdicts) json[to_string(verdict)] = counts[verdict];
  return json;
}

std::string to_string(const VerdictCounts& counts) {
  std::string text;
  for (const Verdict verdict : kVerdicts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[verdict], to_string(verdict));
  return text;
}

}  // namespace slotgraph

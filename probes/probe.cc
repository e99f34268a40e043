#include "probes/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace slotgraph::probes {

namespace {

std::vector<Probe>& registry() {
  static std::vector<Probe>& probes = *new std::vector<Probe>();
  return probes;
}

}  // namespace

bool register_probe(Probe probe) {
  registry().push_back(std::move(probe));
  return true;
}

std::vector<Probe> all_probes() {
  std::vector<Probe> probes = registry();
  std::sort(probes.begin(), probes.end(),
            [](const Probe& a, const Probe& b) { return a.name < b.name; });
  return probes;
}

void Rows::expect(const std::string& question, const std::string& found,
                  const std::string& expected) {
  const Verdict verdict = found == expected ? Verdict::kHolds : Verdict::kViolated;
  rows_.push_back({question, execution_, found, expected, verdict});
}

void Rows::unknown(const std::string& question, const std::string& why,
                   const std::string& expected) {
  rows_.push_back({question, execution_, why, expected, Verdict::kUnknown});
}

void Rows::attempt(const std::string& question, const std::function<void()>& part) {
  try {
    part();
  } catch (const std::exception& error) {
    // Messages of libtorch go on with a stack, which differs between machines.
    const std::string text = error.what();
    rows_.push_back({question, execution_, text.substr(0, text.find('\n')), "no exception",
                     Verdict::kViolated});
  }
}

VerdictCounts count(const std::vector<Row>& rows) {
  VerdictCounts counts;
  for (const Row& row : rows) counts.add(row.verdict);
  return counts;
}

std::string table(const Probe& probe, const std::vector<Row>& rows) {
  using Line = std::array<std::string, 5>;
  std::vector<Line> lines{{"verdict", "execution", "question", "found", "expected"}};
  for (const Row& row : rows) {
    lines.push_back({to_string(row.verdict), row.execution, row.question, row.found, row.expected});
  }
  std::array<std::size_t, 5> widths{};
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text = fmt::format("{}: {}\n\n", probe.name, probe.shows);
  for (const Line& line : lines) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i)
      text += fmt::format("{:<{}}  ", line[i], widths[i]);
    text += line.back() + "\n";
  }
  return text + fmt::format("\n{}: {} rows, {}\n", probe.name, rows.size(), to_string(count(rows)));
}

std::string records(const Probe& probe, const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    const nlohmann::json json{
        {"schema", kProbeSchema},           {"probe", probe.name}, {"question", row.question},
        {"execution", row.execution},       {"found", row.found},  {"expected", row.expected},
        {"verdict", to_string(row.verdict)}};
    text += json.dump() + "\n";
  }
  return text;
}

}  // namespace slotgraph::probes

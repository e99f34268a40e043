#include "probes/conformance/results.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "core/files.h"
#include "core/json_reader.h"

namespace slotgraph::conformance {
namespace {

constexpr int kSchema = 1;
constexpr const char* kHeading = "== program ";  // of a log

std::string path_of(const std::string& folder, const char* kind, Policy policy,
                    const char* extension) {
  return fmt::format("{}/{}-{}.{}", folder, kind, name_of(policy), extension);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    throw Error(Error::kInput,
                {"J01", path, fmt::format("an unreadable file ({})", std::strerror(errno)),
                 "a file of an earlier run", "make the folder with --out"});
  return text.str();
}

std::vector<std::string> read_lines(const std::string& path) {
  std::istringstream text(read_text(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> read_logs(const std::string& path) {
  std::vector<std::string> logs;
  for (const std::string& line : read_lines(path)) {
    if (line.starts_with(kHeading)) {
      logs.emplace_back();
    } else if (!logs.empty()) {
      logs.back() += line + "\n";
    }
  }
  return logs;
}

void require_same(const JsonReader& summary, const char* field, std::uint64_t expected) {
  const std::uint64_t found = summary.field(field).unsigned_integer();
  if (found == expected) return;
  throw Error(Error::kInput,
              {"F09", summary.path() + "/" + field, fmt::to_string(found), fmt::to_string(expected),
               fmt::format("compare with --{} {}", field, found)});
}

}  // namespace

Counts Results::totals() const {
  Counts totals;
  for (const auto& [policy, results] : programs) {
    totals["programs"] += results.size();
    for (const Result& result : results) {
      totals["operations"] += result.operations;
      totals["events"] += result.events;
      totals["calls"] += result.calls;
    }
  }
  return totals;
}

void write_folder(const Options& options, const Results& results) {
  nlohmann::json policies;
  for (const auto& [policy, programs] : results.programs) {
    std::string records, digests, logs;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const Result& result = programs[i];
      digests += result.short_digest() + "\n";
      if (i < options.full) logs += fmt::format("{}{}\n{}", kHeading, i, result.log);
      const nlohmann::json record{{"policy", name_of(policy)},       {"program", i},
                                  {"operations", result.operations}, {"events", result.events},
                                  {"calls", result.calls},           {"sha256", result.sha256}};
      records += record.dump() + "\n";
    }
    if (!options.compact) write_file(path_of(options.out, "programs", policy, "jsonl"), records);
    write_file(path_of(options.out, "digests", policy, "txt"), digests);
    write_file(path_of(options.out, "logs", policy, "txt"), logs);
    policies.push_back(name_of(policy));
  }
  const nlohmann::json summary{
      {"schema", kSchema},
      {"device", {{"name", results.device}, {"instruction_set", results.instruction_set}}},
      {"seed", options.seed},
      {"operations", options.operations},
      {"policies", policies},
      {"totals", results.totals()},
      {"kinds", results.kinds},
      {"situations", results.situations}};
  write_file(options.out + "/summary.json", summary.dump(1) + "\n");
}

Golden read_golden(const Options& options) {
  const std::string path = options.compare + "/summary.json";
  const nlohmann::json document = read_json_file(path);
  const JsonReader summary(document, path);
  (void)summary.field("schema").integer(kSchema, kSchema);
  require_same(summary, "seed", options.seed);
  require_same(summary, "operations", options.operations);
  Golden golden{.device = summary.field("device").field("name").text(),
                .instruction_set = summary.field("device").field("instruction_set").text(),
                .digests = {},
                .logs = {}};
  for (const Policy policy : options.policies) {
    golden.digests[policy] = read_lines(path_of(options.compare, "digests", policy, "txt"));
    golden.logs[policy] = read_logs(path_of(options.compare, "logs", policy, "txt"));
  }
  return golden;
}

}  // namespace slotgraph::conformance

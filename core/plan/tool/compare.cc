#include "core/plan/tool/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/plan/json/public_json.h"
#include "core/plan/json/schedule_json.h"

namespace slotgraph {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_folder(const std::string& folder, const char* found) {
  throw Error(Error::kInput,
              {"T03", folder, found, "a folder with files of the public planner or scheduler",
               "check the path"});
}

// Names of the derived fields that a file has with another value, or lacks.
std::vector<std::string> differing_fields(const nlohmann::json& published,
                                          const std::string& file) {
  std::vector<std::string> fields;
  const JsonReader config = JsonReader(published, file).field("config");
  const nlohmann::json ours = public_document(config);
  for (const auto& [name, value] : ours.items()) {
    const bool in_config = name == "data_scheduler_bound" || name == "max_microbatches";
    const nlohmann::json& theirs = in_config ? published.at("config") : published;
    if (!theirs.contains(name) || theirs.at(name) != value) fields.push_back(name);
  }
  for (const auto& [name, value] : published.items()) {
    const bool described =
        name == "name" || name == "group" || name == "note" || name == "source" || name == "config";
    if (!described && !ours.contains(name)) fields.push_back(name);
  }
  return fields;
}

bool schedules_equal(const PublicSchedule& expected) {
  CpLimits unaligned = expected.limits;
  unaligned.microbatch_group_size = 0;
  try {
    if (greedy_schedule(unaligned, expected.lengths) != expected.before_alignment) return false;
    return greedy_schedule(expected.limits, expected.lengths) == expected.schedule &&
           !expected.refused;
  } catch (const Error& error) {
    return expected.refused && error.rule() == "DC3";
  }
}

}  // namespace

Comparison compare_plans(const std::string& folder) {
  if (!fs::is_directory(folder)) refuse_folder(folder, "no folder");
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Comparison result;
  for (const std::string& file : files) {
    const nlohmann::json published = read_json_file(file);
    if (!published.is_object() || !published.contains("config")) {
      result.skipped.push_back(file);
      continue;
    }
    std::vector<std::string> fields;
    try {
      fields = differing_fields(published, file);
    } catch (const Error& error) {
      // A file that cannot be read ends the comparison; a shape that we refuse is a difference.
      if (error.rule().starts_with("J")) throw;
      result.differences.push_back(fmt::format("{}: refused: {}", file, error.what()));
      continue;
    }
    if (fields.empty()) {
      ++result.equal;
    } else {
      result.differences.push_back(fmt::format("{}: {}", file, fmt::join(fields, ", ")));
    }
  }
  if (result.equal == 0 && result.differences.empty()) refuse_folder(folder, "no plan");
  return result;
}

Comparison compare_schedules(const std::string& folder) {
  if (!fs::is_directory(folder)) refuse_folder(folder, "no folder");
  Comparison result;
  for (const char* name : {"schedules.jsonl", "refused.jsonl"}) {
    const std::string file = folder + "/" + name;
    for (const PublicSchedule& expected : read_public_schedules(file)) {
      if (schedules_equal(expected)) {
        ++result.equal;
      } else {
        result.differences.push_back(fmt::format("{}: {}", file, expected.name));
      }
    }
  }
  if (result.equal == 0 && result.differences.empty()) refuse_folder(folder, "no schedule");
  return result;
}

}  // namespace slotgraph

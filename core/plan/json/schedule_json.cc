#include "core/plan/json/schedule_json.h"

#include <fmt/format.h>

#include <limits>

namespace slotgraph {
namespace {

constexpr int kMost = 1 << 20;                            // bound of counts and indices
constexpr std::int64_t kLongest = std::int64_t{1} << 40;  // bound of lengths, tokens

int read_count(const JsonReader& reader, int low) {
  return static_cast<int>(reader.integer(low, kMost));
}

// null stands for no limit.
int read_optional(const JsonReader& reader) { return reader.is_null() ? 0 : read_count(reader, 1); }

CpSchedule read_microbatches(const JsonReader& reader) {
  CpSchedule schedule;
  for (const JsonReader& microbatch : reader.elements()) {
    CpMicrobatch groups;
    for (const JsonReader& group : microbatch.elements()) {
      const auto parts = group.elements();
      if (parts.size() != 3) group.refuse("[first_rank, cp_size, samples]");
      groups.push_back(
          {read_count(parts[0], 0), read_count(parts[1], 1), parts[2].integers(0, kMost)});
    }
    if (groups.empty()) microbatch.refuse("at least one group");
    schedule.push_back(std::move(groups));
  }
  return schedule;
}

}  // namespace

CpBatch batch_from_json(const JsonReader& reader) {
  CpBatch batch;
  batch.limits = {read_count(reader.field("ranks"), 1), read_count(reader.field("cap"), 1),
                  read_count(reader.field("min_cp"), 1),
                  read_optional(reader.field("microbatch_group_size")),
                  read_optional(reader.field("max_num_seqs"))};
  for (const JsonReader& length : reader.field("lengths").elements())
    batch.lengths.push_back(length.integer(1, kLongest));
  return batch;
}

nlohmann::json to_json(const CpSchedule& schedule) {
  nlohmann::json microbatches = nlohmann::json::array();
  for (const CpMicrobatch& microbatch : schedule) {
    nlohmann::json groups = nlohmann::json::array();
    for (const CpGroup& group : microbatch)
      groups.push_back({group.first_rank, group.size, group.samples});
    microbatches.push_back(groups);
  }
  return {{"microbatches", microbatches}};
}

PublicSchedule schedule_from_public(const JsonReader& reader) {
  PublicSchedule result;
  result.name = reader.field("distribution").text();
  CpBatch batch = batch_from_json(reader);
  result.limits = batch.limits;
  result.lengths = std::move(batch.lengths);
  result.max_length = reader.field("max_length").integer(1, kLongest);
  result.bound = reader.field("bound").integer(1, kMost);
  result.refused = reader.has("error");
  if (!result.refused) result.schedule = read_microbatches(reader.field("microbatches"));
  result.before_alignment = reader.has("microbatches_before_alignment")
                                ? read_microbatches(reader.field("microbatches_before_alignment"))
                                : result.schedule;
  return result;
}

std::vector<PublicSchedule> read_public_schedules(const std::string& path) {
  std::vector<PublicSchedule> schedules;
  for (const JsonLine& line : read_json_lines(path)) {
    schedules.push_back(schedule_from_public(JsonReader(line.document, line.where)));
    schedules.back().name += fmt::format(" {}", schedules.size());
  }
  return schedules;
}

}  // namespace slotgraph

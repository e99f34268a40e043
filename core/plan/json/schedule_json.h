// Schedules of the public dynamic-CP scheduler, one JSON object a line (core/order/testdata).
#ifndef CORE_PLAN_JSON_SCHEDULE_JSON_H_
#define CORE_PLAN_JSON_SCHEDULE_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/json_reader.h"
#include "core/order/dynamic_cp.h"

namespace slotgraph {

struct PublicSchedule {
  std::string name;  // of the distribution of lengths, and the line
  CpLimits limits;
  std::vector<std::int64_t> lengths;
  std::int64_t max_length = 0;  // upper bound of the lengths
  std::int64_t bound = 0;       // most microbatches, as upstream bounds them
  CpSchedule before_alignment;  // with no group size
  CpSchedule schedule;          // empty if upstream refused the batch
  bool refused = false;
};

// What is scheduled: limits and lengths, by the names of the public scheduler's files, whose other
// fields are left alone. Throws Error J03, J04.
struct CpBatch {
  CpLimits limits;
  std::vector<std::int64_t> lengths;
};
CpBatch batch_from_json(const JsonReader& reader);

// {"microbatches": [[[first rank, CP size, [samples]], ..], ..]}, as the public scheduler writes
// it.
nlohmann::json to_json(const CpSchedule& schedule);

PublicSchedule schedule_from_public(const JsonReader& reader);

// Reads every line of a file. Throws Error J01-J05 with the line.
std::vector<PublicSchedule> read_public_schedules(const std::string& path);

}  // namespace slotgraph

#endif  // CORE_PLAN_JSON_SCHEDULE_JSON_H_

// What fuzzers feed with arbitrary text. A target returns if the text is refused with an Error or
// holds what it must; anything else ends the process.
#ifndef CORE_PLAN_JSON_FUZZ_TARGETS_H_
#define CORE_PLAN_JSON_FUZZ_TARGETS_H_

#include <string>

namespace slotgraph {

// A plan in any form: what is read is written and read back alike; what is accepted can be used.
void fuzz_plan(const std::string& text);
// A shape: what is planned holds check().
void fuzz_shape(const std::string& text);
// A line of public schedules: what is scheduled holds check_schedule.
void fuzz_schedule(const std::string& text);

}  // namespace slotgraph

#endif  // CORE_PLAN_JSON_FUZZ_TARGETS_H_

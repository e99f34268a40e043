// The public planner's and scheduler's results against ours, file by file.
#ifndef CORE_PLAN_TOOL_COMPARE_H_
#define CORE_PLAN_TOOL_COMPARE_H_

#include <string>
#include <vector>

namespace slotgraph {

struct Comparison {
  int equal = 0;
  std::vector<std::string> differences;  // a line for each file or schedule that differs
  std::vector<std::string> skipped;      // files without a `config`
};

// Recomputes every plan of a folder in the format of core/plan/testdata, in mode `public`; files
// without a `config` are skipped. Throws Error: J01-J05 for a file, T03 no such folder or no
// plan in it.
Comparison compare_plans(const std::string& folder);

// Recomputes schedules.jsonl and refused.jsonl of a folder in the format of core/order/testdata.
Comparison compare_schedules(const std::string& folder);

}  // namespace slotgraph

#endif  // CORE_PLAN_TOOL_COMPARE_H_

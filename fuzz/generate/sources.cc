#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/order/balanced_cp.h"
#include "core/plan/json/public_json.h"
#include "core/plan/json/schedule_json.h"
#include "fuzz/generate/generate.h"

namespace slotgraph::fuzz {
namespace {

std::vector<Plan> read_plans(const std::string& folder, const std::string& filter) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Plan> plans;
  for (const std::string& file : files) {
    if (std::filesystem::path(file).stem().string().find(filter) == std::string::npos) continue;
    const nlohmann::json json = read_json_file(file);
    Plan plan = plan_from_public(JsonReader(json, file), PublicSlots::kCorrected);
    check(plan);
    if (plan.layers() > 0) plans.push_back(std::move(plan));
  }
  if (plans.empty()) {
    throw Error(Error::kInput,
                {"F08", "--filter", "`" + filter + "`", "a part of the name of a plan with layers",
                 "see core/plan/testdata for the names"});
  }
  return plans;
}

// Of a batch that the scheduler refuses: none.
CpSchedule schedule_of(const PublicSchedule& found, Scheduler scheduler) {
  if (scheduler == Scheduler::kGreedy) return found.schedule;
  try {
    return balanced_schedule(found.limits, found.lengths, {});
  } catch (const Error& error) {
    if (error.rule() != "DC3") throw;
    return {};
  }
}

std::vector<RankSchedule> read_schedules(const std::string& path, Scheduler scheduler) {
  std::vector<RankSchedule> schedules;
  for (const PublicSchedule& found : read_public_schedules(path)) {
    const bool balanced = scheduler == Scheduler::kBalanced;
    RankSchedule schedule{found.name + (balanced ? " balanced" : ""), {}};
    for (const CpMicrobatch& microbatch : schedule_of(found, scheduler))
      schedule.cp_sizes.push_back(microbatch.front().size);
    schedules.push_back(std::move(schedule));
  }
  return schedules;
}

}  // namespace

Sources read_sources(const std::string& plan_folder, const std::string& schedule_file,
                     const std::string& filter, std::vector<std::string> blocks,
                     Scheduler scheduler) {
  return {read_plans(plan_folder, filter), read_schedules(schedule_file, scheduler),
          std::move(blocks)};
}

std::vector<int> fit(const RankSchedule& schedule, const Plan& plan) {
  const std::set<int, std::greater<>> distinct(schedule.cp_sizes.begin(), schedule.cp_sizes.end());
  int count = 0;
  for (const int covered : plan.covered_counts) {
    if (covered <= static_cast<int>(schedule.cp_sizes.size())) count = std::max(count, covered);
  }
  std::vector<int> variants;
  for (int i = 0; i < count; ++i) {
    const auto position = std::distance(distinct.begin(), distinct.find(schedule.cp_sizes[i]));
    variants.push_back(std::min(static_cast<int>(position), plan.variants() - 1));
  }
  return variants;
}

}  // namespace slotgraph::fuzz

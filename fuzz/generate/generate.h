// Makes cases. Case i of a campaign depends on the campaign's seed and on i only: not on shards,
// not on other cases.
#ifndef FUZZ_GENERATE_GENERATE_H_
#define FUZZ_GENERATE_GENERATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "fuzz/case/case.h"

namespace slotgraph::fuzz {

// A schedule of the public dynamic-CP scheduler: the CP size of rank 0's group in every microbatch.
struct RankSchedule {
  std::string name;
  std::vector<int> cp_sizes;
};

// What cases are drawn from.
struct Sources {
  std::vector<Plan> plans;  // with at least one layer
  std::vector<RankSchedule> schedules;
  std::vector<std::string> blocks;  // registered block kinds
};

// Who makes the schedules of the public batches.
enum class Scheduler {
  kGreedy,    // the public scheduler, as it is
  kBalanced,  // core/order/balanced_cp.h
};

// Reads the public plans (with corrected slots) and schedules from their folders; plans whose name
// lacks `filter` are left out. `blocks`: names of the blocks that layers are made of. Throws Error:
// J.., P.., F08 no plan matches.
Sources read_sources(const std::string& plan_folder, const std::string& schedule_file,
                     const std::string& filter, std::vector<std::string> blocks,
                     Scheduler scheduler = Scheduler::kGreedy);

// SplitMix64(campaign seed ^ golden * (index + 1)).
std::uint64_t case_seed(std::uint64_t campaign_seed, std::uint64_t index);

struct Generated {
  Case value;        // if not skipped
  std::string plan;  // names, for the record
  std::string schedule;
  bool skipped = false;  // the public schedule has fewer microbatches than the plan covers
};
Generated generate(const Sources& sources, std::uint64_t seed);

// Cases sized for a GPU: hidden size 1024 to 4096, 64 to 512 tokens, eight shapes. kLargeBlock
// cases in a row differ in their schedules only, so that one capture serves them all. None is
// skipped.
inline constexpr std::uint64_t kLargeShapes = 8;
inline constexpr std::uint64_t kLargeBlock = 25;
Generated generate_large(const Sources& sources, std::uint64_t campaign_seed, std::uint64_t index);

// Variants for a public schedule on a plan: the position of the CP size among the
// schedule's distinct sizes, descending, clipped to the plan's variants; cut to the largest covered
// count. Empty if there is none.
std::vector<int> fit(const RankSchedule& schedule, const Plan& plan);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_GENERATE_GENERATE_H_

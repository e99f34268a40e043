// How long a dynamic-CP step takes at least, and a scheduler that comes nearer to that than the
// greedy one.
#ifndef CORE_ORDER_BALANCED_CP_H_
#define CORE_ORDER_BALANCED_CP_H_

#include <cstdint>
#include <vector>

#include "core/order/dynamic_cp.h"

namespace slotgraph {

// What a rank of a group spends on a sequence of length s in k ranks: attention s * s / k, as the
// public scheduler counts, plus `communication` for each token that it receives from the others,
// s * (k - 1) / k of them. Without communication the widest groups are always best.
struct CpCost {
  double communication = 0;
};

// The sum over the microbatches of their slowest rank: all ranks of a batch wait for each other at
// the end of a microbatch, so the steps of a pipeline stage are at least that long.
double critical_path(const std::vector<std::int64_t>& lengths, const CpSchedule& schedule,
                     const CpCost& cost);

// No schedule is shorter: all work, every sequence in its smallest group, spread evenly.
double shortest_critical_path(const CpLimits& limits, const std::vector<std::int64_t>& lengths,
                              const CpCost& cost);

// The shortest of the schedules that give every sequence the ranks it needs, but at least a certain
// number, spread the sequences of each size evenly over as many groups as fill whole microbatches,
// and put groups of like cost into one microbatch; and of the greedy schedule, if that exists.
// Holds check_schedule. Throws Error as check_batch, and DC3 if no such schedule has a multiple of
// N microbatches: each needs a sequence.
CpSchedule balanced_schedule(const CpLimits& limits, const std::vector<std::int64_t>& lengths,
                             const CpCost& cost);

}  // namespace slotgraph

#endif  // CORE_ORDER_BALANCED_CP_H_

// Dynamic context parallelism: from the lengths of a batch's sequences to microbatches, in each of
// which the ranks form CP groups of different sizes.
#ifndef CORE_ORDER_DYNAMIC_CP_H_
#define CORE_ORDER_DYNAMIC_CP_H_

#include <cstdint>
#include <vector>

namespace slotgraph {

struct CpLimits {
  int ranks = 1;                  // G, which share one batch; a power of two
  int cap = 1;                    // tokens of one rank
  int min_cp = 1;                 // smallest group; a power of two
  int microbatch_group_size = 0;  // N: the number of microbatches is a multiple; 0: no alignment
  int max_num_seqs = 0;           // most sequences of a group; 0: no limit
};

// Neighbouring ranks that split every sequence of the group evenly.
struct CpGroup {
  int first_rank = 0;
  int size = 1;
  std::vector<int> samples;  // indices of lengths, in packing order
  bool operator==(const CpGroup&) const = default;
};
using CpMicrobatch = std::vector<CpGroup>;  // groups in the order of their ranks; all ranks
using CpSchedule = std::vector<CpMicrobatch>;

// Throws Error DC1 for limits out of range and DC2 for a length below 1 or above ranks * cap.
void check_batch(const CpLimits& limits, const std::vector<std::int64_t>& lengths);

// Upstream's greedy schedule, longest sequence first: all decisions, ties included, as the public
// scheduler makes them. Throws Error as check_batch, and DC3 if too few groups exist to make the
// number of microbatches a multiple of N: groups before alignment must number at least
// N * ceil(M / N). A batch without sequences has no microbatches.
CpSchedule greedy_schedule(const CpLimits& limits, const std::vector<std::int64_t>& lengths);

// Splits microbatches until their number is a multiple of N, as greedy_schedule does at its end.
// Throws Error DC3.
void align(const CpLimits& limits, CpSchedule& schedule);

// Doubles groups, a smallest first, until the microbatch has all ranks. Sizes must be powers of
// two.
void fill_ranks(int ranks, CpMicrobatch& microbatch);

// What every schedule holds. Throws Error with the first broken rule: DS1 every sample is in one
// group, and in one only; DS2 sizes are powers of two, at least min_cp, and their sum is G; DS3
// groups follow each other without a gap and do not grow; DS4 a rank has at most `cap` tokens; DS5
// a group has at most max_num_seqs sequences; DS6 the number of microbatches is a multiple of N.
void check_schedule(const CpLimits& limits, const std::vector<std::int64_t>& lengths,
                    const CpSchedule& schedule);

}  // namespace slotgraph

#endif  // CORE_ORDER_DYNAMIC_CP_H_

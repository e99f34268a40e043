// Which numbers of microbatches a step may have.
#ifndef CORE_ORDER_MICROBATCH_COUNTS_H_
#define CORE_ORDER_MICROBATCH_COUNTS_H_

#include <cstdint>
#include <vector>

#include "core/order/pipeline_order.h"

namespace slotgraph {

// The counts up to `limit` that the public data scheduler makes: with virtual stages the multiples
// of the group size, otherwise every count. Ascending. Without a pipeline every microbatch is a
// step of its own: {1}. Throws Error: OP1 as training_order, OC1 limit below 1, above kMostEvents,
// or, with virtual stages, no multiple of the group size.
std::vector<int> aligned_counts(const PipelineShape& shape, int limit);

// All counts up to `limit` that the pipeline schedulers run, aligned or not. Ascending.
std::vector<int> legal_counts(const PipelineShape& shape, int limit);

// The counts whose orders make every set of frames live, and every pair of backwards consecutive,
// that any of `counts` does: the longest aligned one, whose order the shorter aligned ones follow
// up to their last forward, and the others. `counts` must be legal.
std::vector<int> dominating_counts(const PipelineShape& shape, const std::vector<int>& counts);

// What bounds the number of microbatches of the dynamic-CP scheduler.
struct BatchBound {
  std::int64_t samples = 0;  // of the global batch, sub-samples of packed ones counted one by one
  int ranks = 1;             // G, which share one batch
  int cap = 0;               // tokens of one rank
  int min_cp = 1;
  std::int64_t max_length = 0;    // of a sample, padded
  int microbatch_group_size = 0;  // N with virtual stages; 0: no alignment
};
// Most microbatches into which such a batch is scheduled, at least 1. Throws Error OC2 for a value
// out of range.
std::int64_t most_microbatches(const BatchBound& batch);

// What bounds the number of microbatches of one data-parallel rank when sequences are packed at one
// CP size.
struct PackingBound {
  std::int64_t sequences = 0;  // of the global batch
  int data_parallel = 1;
  int cp = 1;
  int cap = 0;                    // tokens of one rank
  std::int64_t max_length = 0;    // of a sequence, padded
  int max_num_seqs = 0;           // most sequences of a pack; 0: no limit
  int microbatch_group_size = 0;  // N with virtual stages; 0: no alignment
};
std::int64_t most_microbatches(const PackingBound& batch);

// CP size that a sample needs: a power of two, at least min_cp, whose ranks hold it with `cap`
// tokens each. Length at most 2^40, cap and min_cp at least 1.
std::int64_t needed_cp(std::int64_t length, int cap, int min_cp);

}  // namespace slotgraph

#endif  // CORE_ORDER_MICROBATCH_COUNTS_H_

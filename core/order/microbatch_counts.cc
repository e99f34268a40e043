#include "core/order/microbatch_counts.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace slotgraph {
namespace {

std::int64_t divided_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; }

void require_positive(std::initializer_list<std::pair<const char*, std::int64_t>> values) {
  for (const auto& [name, value] : values) {
    if (value >= 1) continue;
    throw Error(Error::kInput,
                {"OC2", name, fmt::to_string(value), "at least 1", "correct the batch"});
  }
}

}  // namespace

std::vector<int> aligned_counts(const PipelineShape& shape, int limit) {
  capture_order(shape, 1);  // throws for a shape out of range
  const bool aligned = shape.virtual_stages > 0;
  const int step = aligned ? shape.microbatch_group_size : 1;
  if (limit < step || limit > kMostEvents || limit % step != 0) {
    throw Error(Error::kInput,
                {"OC1", "max_microbatches", fmt::to_string(limit),
                 aligned ? fmt::format("a multiple of the group size {}", step) : "at least 1",
                 "round the limit to a count that a step may have"});
  }
  if (shape.pipeline_size == 1) return {1};
  std::vector<int> counts;
  for (int count = step; count <= limit; count += step) counts.push_back(count);
  return counts;
}

std::vector<int> legal_counts(const PipelineShape& shape, int limit) {
  capture_order(shape, 1);  // throws for a shape out of range
  std::vector<int> counts;
  const int most = std::min(limit, kMostEvents / 2 / shape.chunks());
  for (int count = 1; count <= most; ++count) {
    if (is_legal(shape, count)) counts.push_back(count);
  }
  return counts;
}

std::vector<int> dominating_counts(const PipelineShape& shape, const std::vector<int>& counts) {
  const int group = shape.virtual_stages == 0 ? 1 : std::max(shape.microbatch_group_size, 1);
  std::vector<int> dominating;
  int longest = 0;
  for (const int count : counts) {
    if (count % group == 0) {
      longest = std::max(longest, count);
    } else {
      dominating.push_back(count);
    }
  }
  if (longest > 0) dominating.push_back(longest);
  return dominating;
}

std::int64_t needed_cp(std::int64_t length, int cap, int min_cp) {
  std::int64_t size = 1;
  while (size * cap < length) size *= 2;
  return std::max<std::int64_t>(size, min_cp);
}

std::int64_t most_microbatches(const BatchBound& batch) {
  require_positive({{"samples", batch.samples},
                    {"ranks", batch.ranks},
                    {"cap", batch.cap},
                    {"min_cp", batch.min_cp},
                    {"max_length", batch.max_length}});
  if (batch.max_length > std::int64_t{1} << 40) {
    throw Error(Error::kInput, {"OC2", "max_length", fmt::to_string(batch.max_length),
                                "at most 2^40 tokens", "correct the batch"});
  }
  const std::int64_t cp =
      std::min<std::int64_t>(needed_cp(batch.max_length, batch.cap, batch.min_cp), batch.ranks);
  // Every microbatch but the last has at least ranks / cp groups of at least one sample each.
  const std::int64_t each = std::max<std::int64_t>(1, batch.ranks / cp);
  const std::int64_t count = divided_up(batch.samples, each);
  const std::int64_t unit = std::max(batch.microbatch_group_size, 1);
  return divided_up(count, unit) * unit;
}

std::int64_t most_microbatches(const PackingBound& batch) {
  require_positive({{"sequences", batch.sequences},
                    {"data_parallel", batch.data_parallel},
                    {"cp", batch.cp},
                    {"cap", batch.cap},
                    {"max_length", batch.max_length}});
  std::int64_t each =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(batch.cap) * batch.cp / batch.max_length);
  if (batch.max_num_seqs > 0) each = std::min<std::int64_t>(each, batch.max_num_seqs);
  const std::int64_t unit =
      static_cast<std::int64_t>(batch.data_parallel) * std::max(batch.microbatch_group_size, 1);
  return divided_up(divided_up(batch.sequences, each), unit) * unit / batch.data_parallel;
}

}  // namespace slotgraph

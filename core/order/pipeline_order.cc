#include "core/order/pipeline_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/error.h"

namespace slotgraph {
namespace {

void check_shape(const PipelineShape& shape, int microbatches) {
  const auto refuse = [](const char* where, int found, std::string expected) {
    throw Error(Error::kInput, {"OP1", where, fmt::to_string(found), std::move(expected),
                                "correct the pipeline shape"});
  };
  if (shape.pipeline_size < 1) refuse("pipeline_size", shape.pipeline_size, "at least 1");
  if (shape.rank < 0 || shape.rank >= shape.pipeline_size) {
    refuse("pipeline_rank", shape.rank, fmt::format("0 to {}", shape.pipeline_size - 1));
  }
  if (shape.virtual_stages < 0) refuse("virtual_stages", shape.virtual_stages, "at least 0");
  if (shape.virtual_stages > 0 && shape.pipeline_size == 1) {
    refuse("virtual_stages", shape.virtual_stages, "none with pipeline_size 1");
  }
  if (shape.virtual_stages > 0 && shape.microbatch_group_size < 1) {
    refuse("microbatch_group_size", shape.microbatch_group_size, "at least 1");
  }
  if (microbatches < 1) refuse("microbatches", microbatches, "at least 1");
  if (microbatches > kMostEvents / 2 / shape.chunks()) {
    refuse(
        "microbatches", microbatches,
        fmt::format("at most {} for {} chunks", kMostEvents / 2 / shape.chunks(), shape.chunks()));
  }
}

bool feeds_the_pipeline(const PipelineShape& shape, int microbatches) {
  if (shape.virtual_stages == 0) return true;
  const int group = shape.microbatch_group_size;
  const int rest = microbatches % group;
  return shape.pipeline_size <= group && group <= microbatches &&
         (rest == 0 || rest >= shape.pipeline_size);
}

// The chunk of each virtual microbatch, group by group.
std::vector<int> chunk_table(const PipelineShape& shape, int microbatches) {
  const int group = shape.virtual_stages == 0 ? microbatches : shape.microbatch_group_size;
  std::vector<int> table;
  table.reserve(static_cast<std::size_t>(microbatches) * shape.chunks());
  for (int first = 0; first < microbatches;) {
    const int size = std::min(group, microbatches - first);
    for (int chunk = 0; chunk < shape.chunks(); ++chunk) table.insert(table.end(), size, chunk);
    first += size;
  }
  return table;
}

}  // namespace

int warm_up_forwards(const PipelineShape& shape, int total) {
  if (shape.pipeline_size == 1) return 0;
  const std::int64_t distance = std::int64_t{shape.pipeline_size} - shape.rank - 1;
  const std::int64_t groups =
      std::int64_t{shape.virtual_stages - 1} * std::int64_t{shape.microbatch_group_size};
  const std::int64_t forwards = shape.virtual_stages == 0 ? distance : 2 * distance + groups;
  return static_cast<int>(std::min<std::int64_t>(forwards, total));
}

bool is_legal(const PipelineShape& shape, int microbatches) {
  try {
    check_shape(shape, microbatches);
  } catch (const Error&) {
    return false;
  }
  return feeds_the_pipeline(shape, microbatches);
}

Order capture_order(const PipelineShape& shape, int microbatches) {
  check_shape(shape, microbatches);
  const std::vector<int> table = chunk_table(shape, microbatches);
  const int total = static_cast<int>(table.size());
  const int warm_up = warm_up_forwards(shape, total);
  Order order;
  order.reserve(2 * table.size());
  int backward = 0;
  const auto add_backward = [&] { order.push_back(-(shape.chunks() - table[backward++])); };
  for (int forward = 0; forward < total; ++forward) {
    order.push_back(table[forward] + 1);
    if (forward >= warm_up) add_backward();
  }
  while (backward < total) add_backward();
  return order;
}

Order training_order(const PipelineShape& shape, int microbatches) {
  check_shape(shape, microbatches);
  if (!feeds_the_pipeline(shape, microbatches)) {
    throw Error(Error::kInput, {"OP2", "interleaved order",
                                fmt::format("P {}, N {}, M {}", shape.pipeline_size,
                                            shape.microbatch_group_size, microbatches),
                                "P <= N <= M, and M mod N either 0 or at least P",
                                shape.microbatch_group_size < shape.pipeline_size
                                    ? "choose a microbatch_group_size N of at least P"
                                    : "choose another number of microbatches M"});
  }
  return capture_order(shape, microbatches);
}

std::vector<OrderEvent> events(const Order& order) {
  int chunks = 0;
  for (const int entry : order) chunks = std::max(chunks, std::abs(entry));
  std::vector<int> seen(2 * static_cast<std::size_t>(chunks) + 1);
  std::vector<OrderEvent> result;
  result.reserve(order.size());
  for (const int entry : order)
    result.push_back({entry > 0, std::abs(entry) - 1, seen[chunks + entry]++});
  return result;
}

void check_order(const Order& order, int chunks) {
  const auto refuse = [](const char* rule, std::string where, std::string found,
                         std::string expected) {
    throw Error(Error::kInput,
                {rule, std::move(where), std::move(found), std::move(expected),
                 "correct the order: +c is a forward, -c a backward of chunk c, from 1"});
  };
  if (chunks < 1) refuse("OR1", "order", fmt::format("{} chunks", chunks), "at least 1");
  if (order.empty() || order.size() % (2 * static_cast<std::size_t>(chunks)) != 0) {
    refuse("OR1", "order", fmt::format("{} entries", order.size()),
           fmt::format("a positive multiple of 2 * {} chunks", chunks));
  }
  std::vector<int> forwards(chunks), backwards(chunks);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t chunk = std::abs(std::int64_t{order[i]}) - 1;
    if (chunk < 0 || chunk >= chunks) {
      refuse("OR1", fmt::format("order, entry {}", i), fmt::to_string(order[i]),
             fmt::format("a chunk number from 1 to {}, or its negative", chunks));
    }
    ++(order[i] > 0 ? forwards : backwards)[chunk];
  }
  const int microbatches = static_cast<int>(order.size() / (2 * static_cast<std::size_t>(chunks)));
  for (int chunk = 0; chunk < chunks; ++chunk) {
    if (forwards[chunk] == microbatches && backwards[chunk] == microbatches) continue;
    refuse("OR1", fmt::format("order, chunk {}", chunk + 1),
           fmt::format("{} forwards and {} backwards", forwards[chunk], backwards[chunk]),
           fmt::format("{} of each, as for every chunk", microbatches));
  }
  std::vector<int> live(chunks);
  for (std::size_t i = 0; i < order.size(); ++i) {
    int& outstanding = live[std::abs(order[i]) - 1];
    outstanding += order[i] > 0 ? 1 : -1;
    if (outstanding < 0) {
      refuse("OR2", fmt::format("order, entry {}", i), fmt::to_string(order[i]),
             "a forward of that chunk before its backward");
    }
  }
}

std::vector<int> peak_outstanding(const Order& order, int chunks) {
  std::vector<int> live(chunks), peak(chunks);
  for (const int entry : order) {
    const int chunk = std::abs(entry) - 1;
    live[chunk] += entry > 0 ? 1 : -1;
    peak[chunk] = std::max(peak[chunk], live[chunk]);
  }
  return peak;
}

}  // namespace slotgraph

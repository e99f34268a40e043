#include "core/order/pipeline_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/error.h"

namespace slotgraph {
namespace {

void check_shape(const PipelineShape& shape, int microbatches) {
  const auto refuse = [](const char* where, int found, std::string expected) {
    throw Error(
        {"O01", where, fmt::to_string(found), std::move(expected), "correct the pipeline shape"});
  };
  if (shape.pipeline_size < 1) refuse("pipeline_size", shape.pipeline_size, "at least 1");
  if (shape.rank < 0 || shape.rank >= shape.pipeline_size) {
    refuse("pipeline_rank", shape.rank, fmt::format("0 to {}", shape.pipeline_size - 1));
  }
  if (shape.virtual_stages < 0) refuse("virtual_stages", shape.virtual_stages, "at least 0");
  if (shape.virtual_stages > 0 && shape.pipeline_size == 1) {
    refuse("virtual_stages", shape.virtual_stages, "none with pipeline_size 1");
  }
  if (microbatches < 1) refuse("microbatches", microbatches, "at least 1");
  if (shape.virtual_stages == 0) return;
  const int group = shape.microbatch_group_size;
  const int rest = group > 0 ? microbatches % group : 0;
  const bool fits = shape.pipeline_size <= group && group <= microbatches;
  if (!fits || (rest != 0 && rest < shape.pipeline_size)) {
    throw Error({"O02", "interleaved order",
                 fmt::format("P {}, N {}, M {}", shape.pipeline_size, group, microbatches),
                 "P <= N <= M, and M mod N either 0 or at least P",
                 "choose another number of microbatches"});
  }
}

// The chunk of each virtual microbatch, group by group (planner.md 1.2, table).
std::vector<int> chunk_table(const PipelineShape& shape, int microbatches) {
  const int group = shape.virtual_stages == 0 ? microbatches : shape.microbatch_group_size;
  std::vector<int> table;
  for (int first = 0; first < microbatches; first += group) {
    const int size = std::min(group, microbatches - first);
    for (int chunk = 0; chunk < shape.chunks(); ++chunk) table.insert(table.end(), size, chunk);
  }
  return table;
}

int warm_up_forwards(const PipelineShape& shape, int total) {
  if (shape.pipeline_size == 1) return 0;
  const int distance = shape.pipeline_size - shape.rank - 1;
  const int forwards = shape.virtual_stages == 0 ? distance
                                                 : 2 * distance + (shape.virtual_stages - 1) *
                                                                      shape.microbatch_group_size;
  return std::min(forwards, total);
}

}  // namespace

Order training_order(const PipelineShape& shape, int microbatches) {
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

std::vector<OrderEvent> events(const Order& order) {
  std::map<int, int> seen;
  std::vector<OrderEvent> result;
  for (const int entry : order) result.push_back({entry > 0, std::abs(entry) - 1, seen[entry]++});
  return result;
}

}  // namespace slotgraph

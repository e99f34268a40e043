#include "core/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/order/microbatch_counts.h"
#include "core/plan/colouring.h"
#include "core/plan/conflicts.h"

namespace slotgraph {
namespace {

// The seven fields of every branch: variant, chunk, physical slot, layer.
std::vector<Slot> emit(const Plan& plan, const Colouring& frame_colours) {
  std::vector<Slot> slots;
  slots.reserve(frame_colours.size() * plan.cp_sizes.size());
  const int layers = plan.layers();
  for (int variant = 0; variant < plan.variants(); ++variant) {
    int frame = 0;
    int first_layer = 0;  // of the chunk, in the flattened list
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      for (int slot = 0; slot < plan.ring_length; ++slot) {
        for (int layer = 0; layer < plan.layers_per_chunk[chunk]; ++layer, ++frame) {
          slots.push_back({frame_colours[frame], slot, variant * plan.ring_length + slot, chunk,
                           layer, variant * layers + first_layer + layer,
                           plan.gradient_colours[chunk][slot]});
        }
      }
      first_layer += plan.layers_per_chunk[chunk];
    }
  }
  return slots;
}

}  // namespace

int most_in_flight(const PipelineShape& shape, const std::vector<int>& counts) {
  int most = 0;
  for (const int count : dominating_counts(shape, counts)) {
    const auto peaks = peak_outstanding(training_order(shape, count), shape.chunks());
    most = std::max(most, *std::max_element(peaks.begin(), peaks.end()));
  }
  return most;
}

int shortest_ring(const PipelineShape& shape, const std::vector<int>& counts) {
  PipelineShape first = shape;
  first.rank = 0;
  const int ring = most_in_flight(first, counts);
  const bool repeats =
      ring == 1 && std::any_of(counts.begin(), counts.end(), [](int count) { return count > 1; });
  return repeats ? 2 : std::max(ring, 1);
}

Plan make_plan(const PlanRequest& request) {
  Plan plan;
  plan.name = request.name;
  plan.shape = request.shape;
  plan.layers_per_chunk = request.layers_per_chunk;
  plan.cp_sizes = request.cp_sizes;
  plan.covered_counts = request.counts;
  plan.ring_length = request.ring_length == 0 ? 1 : request.ring_length;
  check_shape(plan);
  const int shortest = shortest_ring(request.shape, request.counts);
  if (request.ring_length == 0) plan.ring_length = shortest;
  if (plan.ring_length < shortest) {
    throw Error(Error::kInput, {"PL14", "ring_length", fmt::to_string(plan.ring_length),
                                fmt::format("at least {}", shortest), "use a longer ring"});
  }
  check_shape(plan);
  plan.base_order = capture_order(request.shape, plan.ring_length);
  const Liveness liveness = walk(covering_orders(plan.shape, plan.covered_counts, plan.ring_length,
                                                 !request.omit_capture_order),
                                 plan.chunks(), plan.ring_length, {});
  if (plan.layers() == 0) return plan;
  const Colouring gradients = dsatur(liveness.successive);
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    const auto begin = gradients.begin() + std::ptrdiff_t{chunk} * plan.ring_length;
    plan.gradient_colours.emplace_back(begin, begin + plan.ring_length);
  }
  plan.slots = emit(
      plan, dsatur(frame_conflicts(liveness.together, plan.layers_per_chunk, plan.ring_length)));
  return plan;
}

}  // namespace slotgraph

#include "core/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"

namespace slotgraph {
namespace {

void require(bool holds, const char* rule, std::string where, std::string found,
             std::string expected) {
  if (!holds)
    throw Error(
        {rule, std::move(where), std::move(found), std::move(expected), "correct the plan"});
}

void check_counts(const Plan& plan) {
  const auto positive = [](int value, const char* where) {
    require(value >= 1, "P00", where, fmt::to_string(value), "at least 1");
  };
  positive(plan.ring_length, "ring_length");
  positive(plan.variants(), "number of cp_sizes");
  positive(static_cast<int>(plan.covered_counts.size()), "number of covered_microbatch_counts");
  require(plan.chunks() == plan.shape.chunks(), "P00", "layers_per_chunk",
          fmt::format("{} chunks", plan.chunks()), fmt::format("{}", plan.shape.chunks()));
  for (const int layers : plan.layers_per_chunk) {
    require(layers >= 0, "P00", "layers_per_chunk", fmt::to_string(layers), "at least 0");
  }
  for (std::size_t v = 1; v < plan.cp_sizes.size(); ++v) {
    require(plan.cp_sizes[v] < plan.cp_sizes[v - 1], "P00", "cp_sizes",
            fmt::format("{}", plan.cp_sizes), "descending sizes");
  }
  const int branches = plan.variants() * plan.frames();
  require(static_cast<int>(plan.slots.size()) == branches, "P00", "slots",
          fmt::format("{}", plan.slots.size()),
          fmt::format("{} = variants * ring length * layers", branches));
  if (plan.layers() == 0) return;
  require(static_cast<int>(plan.user_grad_colours.size()) == plan.chunks(), "P00",
          "user_grad_arena_of_chunk_slot", fmt::format("{} chunks", plan.user_grad_colours.size()),
          fmt::to_string(plan.chunks()));
  for (const auto& colours : plan.user_grad_colours) {
    require(static_cast<int>(colours.size()) == plan.ring_length, "P00",
            "user_grad_arena_of_chunk_slot", fmt::format("{} slots", colours.size()),
            fmt::to_string(plan.ring_length));
  }
}

void check_slot(const Plan& plan, int index, int variant, int chunk, int slot, int layer) {
  const Slot& found = plan.slots[index];
  const std::string where = fmt::format("slot {}", index);
  const int fields[] = {found.saved_arena_id,    found.physical_slot, found.io_branch_id,
                        found.model_chunk,       found.layer,         found.warmup_alias_group,
                        found.user_grad_arena_id};
  const int branches = static_cast<int>(plan.slots.size());
  for (int i = 0; i < 7; ++i) {
    require(fields[i] >= 0 && fields[i] < std::max(branches, 1), "P01",
            fmt::format("{}, field {}", where, i), fmt::to_string(fields[i]),
            fmt::format("0 to {}", branches - 1));
  }
  require(found.model_chunk == chunk && found.physical_slot == slot && found.layer == layer, "P02",
          where,
          fmt::format("chunk {}, slot {}, layer {}", found.model_chunk, found.physical_slot,
                      found.layer),
          fmt::format("chunk {}, slot {}, layer {} in emission order", chunk, slot, layer));
  const int first_layer =
      std::accumulate(plan.layers_per_chunk.begin(), plan.layers_per_chunk.begin() + chunk, 0);
  const int group = variant * plan.layers() + first_layer + layer;
  require(found.warmup_alias_group == group, "P02", where + ", field 5",
          fmt::to_string(found.warmup_alias_group),
          fmt::format("{}, the module of this variant and layer", group));
  require(found.io_branch_id == variant * plan.ring_length + slot, "P02", where + ", field 2",
          fmt::to_string(found.io_branch_id), fmt::to_string(variant * plan.ring_length + slot));
  const Slot& first = plan.slots[plan.frame(chunk, slot, layer)];
  require(found.saved_arena_id == first.saved_arena_id, "P03", where + ", field 0",
          fmt::to_string(found.saved_arena_id),
          fmt::format("{}, the colour of the frame in variant 0", first.saved_arena_id));
  const int gradient = plan.user_grad_colours[chunk][slot];
  require(found.user_grad_arena_id == gradient, "P03", where + ", field 6",
          fmt::to_string(found.user_grad_arena_id),
          fmt::format("{}, the gradient colour of chunk {}, slot {}", gradient, chunk, slot));
}

// Walks one order with `microbatches` and looks for colours that two live frames share.
void check_order(const Plan& plan, const Order& order, int microbatches) {
  const std::string where = fmt::format("order of {} microbatches", microbatches);
  std::set<std::pair<int, int>> live;  // (chunk, physical slot)
  std::set<int> colours;
  std::pair<int, int> previous{-1, -1};
  for (const OrderEvent& event : events(order)) {
    const std::pair place{event.chunk, event.microbatch % plan.ring_length};
    const std::string at =
        fmt::format("{}, {} of chunk {}, slot {}", where, event.forward ? "forward" : "backward",
                    place.first, place.second);
    require(event.chunk < plan.chunks(), "P00", at, fmt::to_string(event.chunk),
            "a chunk of the plan");
    if (event.forward)
      require(live.insert(place).second, "P06", at, "a frame that is still live", "a longer ring");
    if (!event.forward)
      require(live.erase(place) == 1, "P06", at, "no forward", "a forward before");
    for (int layer = 0; layer < plan.layers_per_chunk[event.chunk]; ++layer) {
      const int colour = plan.slots[plan.frame(place.first, place.second, layer)].saved_arena_id;
      if (!event.forward) {
        colours.erase(colour);
        continue;
      }
      require(colours.insert(colour).second, "P04", fmt::format("{}, layer {}", at, layer),
              fmt::format("colour {}", colour), "a colour that no live frame has");
    }
    if (event.forward) continue;
    const bool returns_gradient = plan.layers_per_chunk[place.first] > 0;
    if (previous.first >= 0 && returns_gradient) {
      require(previous != place, "P06", at, "two backwards in a row", "a longer ring");
      const int mine = plan.user_grad_colours[place.first][place.second];
      const int last = plan.user_grad_colours[previous.first][previous.second];
      const bool was_returned = plan.layers_per_chunk[previous.first] > 0;
      require(mine != last || !was_returned, "P05", at, fmt::format("gradient colour {}", mine),
              "another one than that of the backward before");
    }
    previous = place;
  }
}

}  // namespace

int Plan::layers() const {
  return std::accumulate(layers_per_chunk.begin(), layers_per_chunk.end(), 0);
}

int Plan::branch(int variant, int chunk, int physical_slot, int layer) const {
  const int before = std::accumulate(layers_per_chunk.begin(), layers_per_chunk.begin() + chunk, 0);
  return variant * frames() + before * ring_length + physical_slot * layers_per_chunk[chunk] +
         layer;
}

void check(const Plan& plan) {
  check_counts(plan);
  if (plan.layers() == 0) return;  // a rank with nothing to capture makes no plan
  for (int variant = 0; variant < plan.variants(); ++variant)
    for (int chunk = 0; chunk < plan.chunks(); ++chunk)
      for (int slot = 0; slot < plan.ring_length; ++slot)
        for (int layer = 0; layer < plan.layers_per_chunk[chunk]; ++layer) {
          check_slot(plan, plan.branch(variant, chunk, slot, layer), variant, chunk, slot, layer);
        }
  for (const int count : plan.covered_counts)
    check_order(plan, training_order(plan.shape, count), count);
  check_order(plan, plan.base_order, plan.ring_length);
}

}  // namespace slotgraph

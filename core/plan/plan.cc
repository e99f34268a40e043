#include "core/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/order/microbatch_counts.h"

namespace slotgraph {
namespace {

[[noreturn]] void refuse(const char* rule, std::string where, std::string found,
                         std::string expected) {
  throw Error(Error::kInput, {rule, std::move(where), std::move(found), std::move(expected),
                              "correct the plan or its shape"});
}

void check_ranges(const Plan& plan) {
  if (plan.ring_length < 1)
    refuse("PL00", "ring_length", fmt::to_string(plan.ring_length), "at least 1");
  if (plan.cp_sizes.empty()) refuse("PL00", "cp_sizes", "none", "at least one");
  for (std::size_t v = 0; v < plan.cp_sizes.size(); ++v) {
    if (plan.cp_sizes[v] >= 1 && (v == 0 || plan.cp_sizes[v] < plan.cp_sizes[v - 1])) continue;
    refuse("PL00", "cp_sizes", fmt::format("{}", plan.cp_sizes), "positive, descending sizes");
  }
  if (plan.chunks() != plan.shape.chunks()) {
    refuse("PL00", "layers_per_chunk", fmt::format("{} chunks", plan.chunks()),
           fmt::to_string(plan.shape.chunks()));
  }
  std::int64_t layers = 0;
  for (const int of_chunk : plan.layers_per_chunk) {
    if (of_chunk < 0) refuse("PL00", "layers_per_chunk", fmt::to_string(of_chunk), "at least 0");
    layers += of_chunk;
  }
  const std::int64_t places = std::int64_t{plan.chunks()} * plan.ring_length;
  const std::int64_t frames = layers * plan.ring_length;
  if (layers > kMostFrames || std::max(places, frames) > kMostFrames) {
    refuse("PL00", "plan", fmt::format("{} frames in {} places", frames, places),
           fmt::format("at most {} of each", kMostFrames));
  }
  if (plan.covered_counts.empty())
    refuse("PL00", "covered_microbatch_counts", "none", "at least one");
  for (std::size_t i = 1; i < plan.covered_counts.size(); ++i) {
    if (plan.covered_counts[i] > plan.covered_counts[i - 1]) continue;
    refuse("PL00", "covered_microbatch_counts", fmt::format("{}", plan.covered_counts),
           "ascending counts");
  }
}

void check_counts(const Plan& plan) {
  for (const int count : plan.covered_counts) {
    if (!is_legal(plan.shape, count)) training_order(plan.shape, count);  // throws the reason
  }
  std::int64_t total = 0;
  for (const int count : dominating_counts(plan.shape, plan.covered_counts))
    total += 2 * std::int64_t{count} * plan.chunks();
  if (total > kMostEvents) {
    refuse("OP1", "covered_microbatch_counts", fmt::format("{} events", total),
           fmt::format("at most {} in the orders that have to be looked at", kMostEvents));
  }
}

void check_numbers(const Plan& plan) {
  const std::int64_t branches =
      std::int64_t{plan.variants()} * plan.ring_length * std::int64_t{plan.layers()};
  if (static_cast<std::int64_t>(plan.slots.size()) != branches) {
    refuse("PL00", "slots", fmt::to_string(plan.slots.size()),
           fmt::format("{} = variants * ring length * layers", branches));
  }
  const std::int64_t events = 2 * std::int64_t{plan.chunks()} * plan.ring_length;
  if (static_cast<std::int64_t>(plan.base_order.size()) != events) {
    refuse("PL00", "base_order", fmt::format("{} entries", plan.base_order.size()),
           fmt::format("{} = 2 * chunks * ring length", events));
  }
  const std::size_t chunks = plan.layers() == 0 ? 0 : plan.layers_per_chunk.size();
  if (plan.gradient_colours.size() != chunks) {
    refuse("PL00", "user_grad_arena_of_chunk_slot",
           fmt::format("{} chunks", plan.gradient_colours.size()), fmt::to_string(chunks));
  }
  for (const auto& colours : plan.gradient_colours) {
    if (static_cast<int>(colours.size()) == plan.ring_length) continue;
    refuse("PL00", "user_grad_arena_of_chunk_slot", fmt::format("{} slots", colours.size()),
           fmt::to_string(plan.ring_length));
  }
}

// What one slot must be, from its place in emission order.
struct Place {
  int index;
  int variant;
  int chunk;
  int slot;
  int layer;
  int module;
};

template <typename Visit>
void for_each_place(const Plan& plan, Visit visit) {
  Place place{};
  int first_module = 0;
  for (place.variant = 0; place.variant < plan.variants(); ++place.variant) {
    for (place.chunk = 0; place.chunk < plan.chunks(); ++place.chunk) {
      const int layers = plan.layers_per_chunk[place.chunk];
      for (place.slot = 0; place.slot < plan.ring_length; ++place.slot) {
        for (place.layer = 0; place.layer < layers; ++place.layer, ++place.index) {
          place.module = first_module + place.layer;
          visit(place, plan.slots[place.index]);
        }
      }
      first_module += layers;
    }
  }
}

void check_range(const Plan& plan) {
  const int branches = static_cast<int>(plan.slots.size());
  const int limit = std::max(branches, plan.chunks());
  const auto in_range = [limit](int field) { return field >= 0 && field < limit; };
  for (int index = 0; index < branches; ++index) {
    const Slot& slot = plan.slots[index];
    const int fields[] = {slot.colour, slot.physical_slot, slot.io_branch_id,   slot.model_chunk,
                          slot.layer,  slot.module,        slot.gradient_colour};
    for (int i = 0; i < 7; ++i) {
      if (in_range(fields[i])) continue;
      refuse("PL01", fmt::format("slot {}, field {}", index, i), fmt::to_string(fields[i]),
             fmt::format("0 to {}", limit - 1));
    }
  }
  for (const auto& chunk : plan.gradient_colours) {
    for (const int colour : chunk) {
      if (in_range(colour)) continue;
      refuse("PL01", "user_grad_arena_of_chunk_slot", fmt::to_string(colour),
             fmt::format("0 to {}", limit - 1));
    }
  }
}

void check_emission(const Plan& plan) {
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    const int chunk = plan.slots[i].model_chunk;
    if (chunk >= plan.chunks() || plan.layers_per_chunk[chunk] > 0) continue;
    refuse("PL09", fmt::format("slot {}", i), fmt::format("chunk {}", chunk),
           "a chunk that has layers");
  }
  for_each_place(plan, [&](const Place& place, const Slot& slot) {
    if (slot.model_chunk == place.chunk && slot.physical_slot == place.slot &&
        slot.layer == place.layer)
      return;
    refuse("PL13", fmt::format("slot {}", place.index),
           fmt::format("chunk {}, slot {}, layer {}", slot.model_chunk, slot.physical_slot,
                       slot.layer),
           fmt::format("chunk {}, slot {}, layer {} in emission order", place.chunk, place.slot,
                       place.layer));
  });
  for_each_place(plan, [&](const Place& place, const Slot& slot) {
    if (slot.module == place.module) return;
    refuse("PL08", fmt::format("slot {}, field 5", place.index), fmt::to_string(slot.module),
           fmt::format("{}, the module of this variant and layer", place.module));
  });
}

void check_frames(const Plan& plan) {
  const int frames = plan.frames();
  for_each_place(plan, [&](const Place& place, const Slot& slot) {
    for (int other = place.index - frames; other >= 0; other -= frames) {
      if (plan.slots[other].io_branch_id != slot.io_branch_id) continue;
      refuse("PL02", fmt::format("slot {}, field 2", place.index),
             fmt::to_string(slot.io_branch_id),
             fmt::format("another branch than slot {} of its frame has", other));
    }
  });
  for_each_place(plan, [&](const Place& place, const Slot& slot) {
    const Slot& first = plan.slots[place.index % frames];
    if (slot.colour != first.colour) {
      refuse("PL03", fmt::format("slot {}, field 0", place.index), fmt::to_string(slot.colour),
             fmt::format("{}, the colour of the frame in variant 0", first.colour));
    }
    if (slot.gradient_colour != first.gradient_colour) {
      refuse("PL03", fmt::format("slot {}, field 6", place.index),
             fmt::to_string(slot.gradient_colour),
             fmt::format("{}, the gradient colour in variant 0", first.gradient_colour));
    }
  });
  for_each_place(plan, [&](const Place& place, const Slot& slot) {
    const int gradient = plan.gradient_colours[place.chunk][place.slot];
    if (slot.gradient_colour == gradient) return;
    refuse("PL06", fmt::format("slot {}, field 6", place.index),
           fmt::to_string(slot.gradient_colour),
           fmt::format("{}, the gradient colour of chunk {}, slot {}", gradient, place.chunk,
                       place.slot));
  });
}

// Replays orders against the colours.
class Replay {
 public:
  explicit Replay(const Plan& plan)
      : plan_(plan),
        next_(2 * static_cast<std::size_t>(plan.chunks()) + 1),
        live_(static_cast<std::size_t>(plan.chunks()) * plan.ring_length),
        used_(plan.slots.size()) {
    int frame = 0;
    for (const int layers : plan.layers_per_chunk) {
      first_frame_.push_back(frame);
      frame += layers * plan.ring_length;
    }
  }

  void run(const Order& order, int microbatches) {
    microbatches_ = microbatches;
    std::fill(next_.begin(), next_.end(), 0);
    last_chunk_ = -1;
    for (const int entry : order) {
      const int chunk = std::abs(entry) - 1;
      int& next = next_[plan_.chunks() + entry];
      const int slot = next;
      if (++next == plan_.ring_length) next = 0;
      if (entry > 0) {
        forward(chunk, slot);
      } else {
        backward(chunk, slot);
      }
    }
  }

 private:
  std::string at(bool forward, int chunk, int slot) const {
    return fmt::format("order of {} microbatches, {} of chunk {}, slot {}", microbatches_,
                       forward ? "forward" : "backward", chunk, slot);
  }
  int colour(int chunk, int slot, int layer) const {
    const int layers = plan_.layers_per_chunk[chunk];
    return plan_.slots[first_frame_[chunk] + slot * layers + layer].colour;
  }

  void forward(int chunk, int slot) {
    char& live = live_[chunk * plan_.ring_length + slot];
    if (live) refuse("PL14", at(true, chunk, slot), "a place that is still live", "a longer ring");
    live = 1;
    for (int layer = 0; layer < plan_.layers_per_chunk[chunk]; ++layer) {
      char& used = used_[colour(chunk, slot, layer)];
      if (used) {
        refuse("PL04", fmt::format("{}, layer {}", at(true, chunk, slot), layer),
               fmt::format("colour {}", colour(chunk, slot, layer)),
               "a colour that no live frame has");
      }
      used = 1;
    }
  }

  void backward(int chunk, int slot) {
    live_[chunk * plan_.ring_length + slot] = 0;
    for (int layer = 0; layer < plan_.layers_per_chunk[chunk]; ++layer)
      used_[colour(chunk, slot, layer)] = 0;
    const auto returns_gradient = [&](int c) { return plan_.layers_per_chunk[c] > 0; };
    if (last_chunk_ >= 0 && returns_gradient(chunk) && returns_gradient(last_chunk_)) {
      if (chunk == last_chunk_ && slot == last_slot_)
        refuse("PL14", at(false, chunk, slot), "two backwards of it in a row", "a longer ring");
      const int mine = plan_.gradient_colours[chunk][slot];
      if (mine == plan_.gradient_colours[last_chunk_][last_slot_]) {
        refuse("PL05", at(false, chunk, slot), fmt::format("gradient colour {}", mine),
               "another one than that of the backward before");
      }
    }
    last_chunk_ = chunk;
    last_slot_ = slot;
  }

  const Plan& plan_;
  std::vector<int> first_frame_;  // of each chunk
  std::vector<int> next_;         // slot of the next event of each signed chunk
  std::vector<char> live_;        // places
  std::vector<char> used_;        // colours
  int microbatches_ = 0;
  int last_chunk_ = -1, last_slot_ = -1;  // of the last backward
};

}  // namespace

int Plan::layers() const {
  return std::accumulate(layers_per_chunk.begin(), layers_per_chunk.end(), 0);
}

int Plan::branch(int variant, int chunk, int physical_slot, int layer) const {
  const int before = std::accumulate(layers_per_chunk.begin(), layers_per_chunk.begin() + chunk, 0);
  return variant * frames() + before * ring_length + physical_slot * layers_per_chunk[chunk] +
         layer;
}

int Plan::first_branch(int module) const {
  int chunk = 0;
  int layer = layer_of_module(module);
  while (layer >= layers_per_chunk[chunk]) layer -= layers_per_chunk[chunk++];
  return branch(variant_of_module(module), chunk, 0, layer);
}

void check_shape(const Plan& plan) {
  check_ranges(plan);
  check_counts(plan);
}

void check_structure(const Plan& plan) {
  check_ranges(plan);
  check_numbers(plan);
  check_counts(plan);
  if (plan.layers() > 0) {  // a rank with nothing to capture has no slots
    check_range(plan);
    check_emission(plan);
    check_frames(plan);
  }
  check_order(plan.base_order, plan.chunks());
}

void check(const Plan& plan) {
  check_structure(plan);
  if (plan.layers() == 0) return;
  Replay replay(plan);
  for (const int count : dominating_counts(plan.shape, plan.covered_counts))
    replay.run(training_order(plan.shape, count), count);
  replay.run(plan.base_order, plan.ring_length);
}

bool covers_capture(const Plan& plan) {
  if (plan.layers() == 0) return true;
  try {
    Replay(plan).run(plan.base_order, plan.ring_length);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void check_step(const Plan& plan, const Order& order) {
  check_order(order, plan.chunks());
  const int count = static_cast<int>(order.size()) / plan.chunks() / 2;
  const auto& covered = plan.covered_counts;
  if (!std::binary_search(covered.begin(), covered.end(), count)) {
    throw Error(Error::kInput, {"PL15", "step", fmt::format("{} microbatches", count),
                                fmt::format("one of {}", fmt::join(covered, ", ")),
                                "align the step, or plan with that count"});
  }
  if (plan.layers() > 0) Replay(plan).run(order, count);
}

}  // namespace slotgraph

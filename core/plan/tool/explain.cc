#include "core/plan/tool/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/order/microbatch_counts.h"

namespace slotgraph {
namespace {

// One life of a frame in an order: from its forward to its backward.
struct Life {
  int microbatch;
  int begin;
  int end;
};

std::vector<Life> lives_of(const Plan& plan, const Order& order, const Frame& frame) {
  std::vector<Life> lives;
  std::size_t ended = 0;
  const std::vector<OrderEvent> all = events(order);
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    const OrderEvent& event = all[i];
    if (event.chunk != frame.chunk || plan.slot_of(event.microbatch) != frame.slot) continue;
    if (event.forward) {
      lives.push_back({event.microbatch, i, i});
    } else {
      lives[ended++].end = i;  // first in, first out
    }
  }
  return lives;
}

std::optional<Overlap> overlap_in(const Plan& plan, const Order& order, int microbatches,
                                  bool is_capture, const Frame& a, const Frame& b) {
  const std::vector<Life> lives_of_a = lives_of(plan, order, a);
  const std::vector<Life> lives_of_b = lives_of(plan, order, b);
  // Both are in order of time: the one that ends first has no further partner.
  for (auto x = lives_of_a.begin(), y = lives_of_b.begin();
       x != lives_of_a.end() && y != lives_of_b.end(); ++(x->end < y->end ? x : y)) {
    const int begin = std::max(x->begin, y->begin), end = std::min(x->end, y->end);
    if (begin < end)
      return Overlap{microbatches, is_capture, begin, end, x->microbatch, y->microbatch};
  }
  return std::nullopt;
}

const Slot& slot_of(const Plan& plan, const Frame& frame) {
  return plan.slots[plan.frame(frame.chunk, frame.slot, frame.layer)];
}

std::string counts_of(const Plan& plan) {
  const auto& counts = plan.covered_counts;
  return counts.size() <= 8 ? fmt::format("{}", fmt::join(counts, ", "))
                            : fmt::format("{}, {}, ... {}", counts[0], counts[1], counts.back());
}

std::string name_of(const Frame& frame) {
  return fmt::format("chunk {}, slot {}, layer {}", frame.chunk, frame.slot, frame.layer);
}

// The first frame of the other's arena that is live together with this one.
std::optional<Frame> obstacle(const Plan& plan, const Frame& frame, int arena) {
  for (int i = 0; i < plan.frames(); ++i) {
    const Slot& slot = plan.slots[i];
    const Frame other{slot.model_chunk, slot.physical_slot, slot.layer};
    if (slot.colour == arena && other != frame && find_overlap(plan, frame, other)) return other;
  }
  return std::nullopt;
}

}  // namespace

Frame frame_from(const std::string& text, const Plan& plan) {
  Frame frame;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool parsed = true;
  for (int* part : {&frame.chunk, &frame.slot, &frame.layer}) {
    const bool comma = part == &frame.chunk || (parsed && at != end && *at++ == ',');
    const auto [next, error] = std::from_chars(at, end, *part);
    parsed = parsed && comma && error == std::errc();
    at = next;
  }
  const bool exists = parsed && at == end && frame.chunk >= 0 && frame.chunk < plan.chunks() &&
                      frame.slot >= 0 && frame.slot < plan.ring_length && frame.layer >= 0 &&
                      frame.layer < plan.layers_per_chunk[frame.chunk];
  if (!exists) {
    throw Error(Error::kInput,
                {"T05", "frame", "`" + text + "`",
                 fmt::format("CHUNK,SLOT,LAYER from 0, with slots below {} and layers {}",
                             plan.ring_length, plan.layers_per_chunk),
                 "name a frame of the plan"});
  }
  return frame;
}

std::optional<Overlap> find_overlap(const Plan& plan, const Frame& a, const Frame& b) {
  const auto in_count = [&](int count) {
    return overlap_in(plan, training_order(plan.shape, count), count, false, a, b);
  };
  const auto dominating = dominating_counts(plan.shape, plan.covered_counts);
  if (std::any_of(dominating.begin(), dominating.end(),
                  [&](int count) { return in_count(count).has_value(); })) {
    for (const int count : plan.covered_counts)
      if (auto found = in_count(count)) return found;
  }
  return overlap_in(plan, plan.base_order, plan.ring_length, true, a, b);
}

std::string explain(const Plan& plan, const Frame& a, const Frame& b) {
  const int arena_a = slot_of(plan, a).colour, arena_b = slot_of(plan, b).colour;
  std::string text = fmt::format(
      "{}: arena {}, gradient arena {}\n{}: arena {}, gradient arena {}\n", name_of(a), arena_a,
      slot_of(plan, a).gradient_colour, name_of(b), arena_b, slot_of(plan, b).gradient_colour);
  if (a == b) return text + "They are one frame: its variants share, as one is live at a time.\n";
  if (const auto overlap = find_overlap(plan, a, b)) {
    text += fmt::format(
        "Live together in the {} of {} microbatches, from event {} to {} (microbatches {} and {}): "
        "they must not share.\n",
        overlap->is_capture ? "capture order" : "order", overlap->microbatches, overlap->begin,
        overlap->end, overlap->microbatch_a, overlap->microbatch_b);
    return text + (arena_a == arena_b ? "They share: the plan is broken.\n" : "They do not.\n");
  }
  text += fmt::format(
      "Never live together, in the orders of {} microbatches and in that of the "
      "capture: they may share.\n",
      counts_of(plan));
  if (arena_a == arena_b) return text + "They share.\n";
  const auto of_b = obstacle(plan, a, arena_b), of_a = obstacle(plan, b, arena_a);
  const auto because = [](const Frame& mover, int arena, const std::optional<Frame>& other) {
    return other ? fmt::format("- {} cannot be in arena {}: {} is live together with it\n",
                               name_of(mover), arena, name_of(*other))
                 : fmt::format("- {} could be in arena {}\n", name_of(mover), arena);
  };
  return text + "They do not:\n" + because(a, arena_b, of_b) + because(b, arena_a, of_a);
}

}  // namespace slotgraph

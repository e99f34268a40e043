#include "core/plan/conflicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/order/microbatch_counts.h"

namespace slotgraph {
namespace {

[[noreturn]] void refuse_ring(int place, int ring_length, const char* found) {
  throw Error(
      Error::kInput,
      {"PL14", fmt::format("chunk {}, slot {}", place / ring_length, place % ring_length), found,
       fmt::format("each place drained before it is used again, ring {}", ring_length),
       "use a longer ring"});
}

// Why the graphs are whole. Two places are live together exactly if one is entered while the other
// is live, so it is enough to connect a place, when it is entered, with all that live. The layers
// of a place are entered and left together, so the walk looks at places only, and frame_conflicts
// makes frames of them. A long order may be cut: after the warm-up each forward is followed by one
// backward, chunks come in the same sequence group after group, and the slots of a chunk come round
// after `ring` microbatches. After lcm(group, ring) microbatches both are as before, and conflicts
// only repeat. After the last forward places are only left, and in the same sequence.

// Walks one order after another into the same graphs.
class Walker {
 public:
  Walker(int chunks, int ring_length, const std::vector<std::int64_t>& weights)
      : ring_length_(ring_length),
        weights_(weights),
        result_{ConflictGraph(chunks * ring_length), ConflictGraph(chunks * ring_length), 0, {}},
        next_(2 * static_cast<std::size_t>(chunks) + 1),
        is_live_(static_cast<std::size_t>(chunks) * ring_length) {}

  void add(const Order& order) {
    const int middle = static_cast<int>(next_.size()) / 2;
    std::fill(next_.begin(), next_.end(), 0);
    previous_ = -1;
    for (const int entry : order) {
      int& slot = next_[middle + entry];
      const int place = (std::abs(entry) - 1) * ring_length_ + slot;
      if (++slot == ring_length_) slot = 0;
      if (entry > 0) {
        enter(place);
      } else {
        leave(place);
      }
    }
  }

  Liveness take() { return std::move(result_); }

 private:
  void enter(int place) {
    if (is_live_[place]) refuse_ring(place, ring_length_, "a place entered while it is live");
    for (const int other : live_) result_.together.connect(place, other);
    live_.push_back(place);
    is_live_[place] = true;
    if (weights_.empty()) return;
    weight_ += weights_[place];
    if (weight_ <= result_.peak) return;
    result_.peak = weight_;
    result_.peak_places = live_;
  }

  void leave(int place) {
    if (!is_live_[place])
      refuse_ring(place, ring_length_, "a backward of a place that is not live");
    is_live_[place] = false;
    live_.erase(std::find(live_.begin(), live_.end(), place));
    if (!weights_.empty()) weight_ -= weights_[place];
    if (previous_ == place) refuse_ring(place, ring_length_, "two backwards of a place in a row");
    if (previous_ >= 0) result_.successive.connect(previous_, place);
    previous_ = place;
  }

  int ring_length_;
  const std::vector<std::int64_t>& weights_;
  Liveness result_;
  std::vector<int> next_;  // slot of the next event of each signed chunk
  std::vector<char> is_live_;
  std::vector<int> live_;
  std::int64_t weight_ = 0;
  int previous_ = -1;  // place of the last backward
};

// Aligned microbatches after which conflicts only repeat.
std::int64_t period(const PipelineShape& shape, int ring_length) {
  const std::int64_t group = shape.virtual_stages == 0 ? 1 : shape.microbatch_group_size;
  const std::int64_t warm_up = warm_up_forwards(shape, std::numeric_limits<int>::max());
  const std::int64_t microbatches = (warm_up + shape.chunks() - 1) / shape.chunks() + 1;
  return (microbatches + group - 1) / group * group + std::lcm(group, std::int64_t{ring_length});
}

}  // namespace

int ConflictGraph::degree(int node) const {
  int count = 0;
  for (const std::uint64_t word : neighbours(node)) count += std::popcount(word);
  return count;
}

std::int64_t ConflictGraph::edges() const {
  std::int64_t ends = 0;
  for (const std::uint64_t word : bits_) ends += std::popcount(word);
  return ends / 2;
}

Liveness walk(const std::vector<Order>& orders, int chunks, int ring_length,
              const std::vector<std::int64_t>& weights) {
  Walker walker(chunks, ring_length, weights);
  for (const Order& order : orders) walker.add(order);
  return walker.take();
}

std::vector<Order> covering_orders(const PipelineShape& shape, const std::vector<int>& counts,
                                   int ring_length, bool with_capture) {
  std::vector<Order> orders;
  const std::int64_t enough = period(shape, ring_length);
  const int group = shape.virtual_stages == 0 ? 1 : shape.microbatch_group_size;
  for (const int count : dominating_counts(shape, counts)) {
    const bool cut = count % group == 0 && count > enough;
    orders.push_back(training_order(shape, cut ? static_cast<int>(enough) : count));
  }
  const bool is_counted = std::find(counts.begin(), counts.end(), ring_length) != counts.end();
  if (with_capture && !is_counted) orders.push_back(capture_order(shape, ring_length));
  return orders;
}

ConflictGraph frame_conflicts(const ConflictGraph& places, const std::vector<int>& layers_per_chunk,
                              int ring_length) {
  std::vector<int> first;  // frame of each place; one more at the end
  int frames = 0;
  for (const int layers : layers_per_chunk) {
    for (int slot = 0; slot < ring_length; ++slot, frames += layers) first.push_back(frames);
  }
  first.push_back(frames);
  ConflictGraph result(frames);
  for (int place = 0; place < places.nodes(); ++place) {
    for (int frame = first[place]; frame < first[place + 1]; ++frame) {
      for (int other = frame + 1; other < first[place + 1]; ++other) result.connect(frame, other);
      for_each_bit(places.neighbours(place), [&](int neighbour) {
        for (int other = first[neighbour]; neighbour > place && other < first[neighbour + 1];
             ++other)
          result.connect(frame, other);
      });
    }
  }
  return result;
}

}  // namespace slotgraph

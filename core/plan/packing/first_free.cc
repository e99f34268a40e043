#include "core/plan/packing/first_free.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/order/microbatch_counts.h"
#include "core/plan/colouring.h"
#include "core/plan/conflicts.h"

namespace slotgraph {
namespace {

// Why the plan is right: it is made by running the very steps that it is for. A slot is added only
// when no older one is free, and it gets a higher number than all older ones of its chunk. So it
// changes no choice that was made before it, and a step with the finished plan makes the same
// choices again. An arena serves one size class only, and a class has as many arenas as its frames
// live at once in any of these steps: when a frame comes, an arena of its class is free. The frame
// fits, because the arenas of a class are as large as its largest frame.

std::vector<Order> orders_of(const Plan& plan) {
  std::vector<Order> orders;
  for (const int count : dominating_counts(plan.shape, plan.covered_counts))
    orders.push_back(training_order(plan.shape, count));
  return orders;
}

// Arenas of equal size, for the frames that are larger than those of the class before.
struct SizeClass {
  std::int64_t size;
  int first_arena;
  int arenas;
};

// Runs the orders and makes a slot wherever none is free, from the first free arenas of each
// layer's class. A class has as many arenas as its frames live at once, so one is always free.
class Builder {
 public:
  Builder(const Plan& plan, const LayerBytes& bytes, const std::vector<SizeClass>& classes)
      : chooser_(plan.chunks()), numbers_(plan.chunks()) {
    for (const auto& chunk : bytes) {
      class_of_layer_.emplace_back();
      for (const std::int64_t size : chunk) {
        class_of_layer_.back().push_back(*std::find_if(
            classes.begin(), classes.end(), [size](const SizeClass& c) { return size <= c.size; }));
      }
    }
    for (const Order& order : orders_of(plan)) run(order);
  }

  const FirstFreeChooser& chooser() const { return chooser_; }
  // A number of each slot of each chunk, and the numbers of slots of consecutive backwards.
  const std::vector<std::vector<int>>& numbers() const { return numbers_; }
  const std::set<std::pair<int, int>>& successions() const { return successions_; }
  int slots() const { return slots_; }

 private:
  void run(const Order& order) {
    chooser_.start_step();
    int last = -1;
    for (const int entry : order) {
      const int chunk = std::abs(entry) - 1;
      if (entry > 0) {
        if (chooser_.forward(chunk) >= 0) continue;
        make(chunk);
        chooser_.forward(chunk);
        continue;
      }
      const int number = numbers_[chunk][chooser_.backward(chunk)];
      if (last >= 0) successions_.emplace(last, number);
      last = number;
    }
  }

  void make(int chunk) {
    std::vector<int> arenas;
    for (const SizeClass& of_layer : class_of_layer_[chunk]) {
      int arena = of_layer.first_arena;
      while (chooser_.is_used(arena) ||
             std::find(arenas.begin(), arenas.end(), arena) != arenas.end())
        ++arena;
      arenas.push_back(arena);
    }
    chooser_.add_slot(chunk, std::move(arenas));
    numbers_[chunk].push_back(slots_++);
  }

  FirstFreeChooser chooser_;
  std::vector<std::vector<SizeClass>> class_of_layer_;  // of each chunk
  std::vector<std::vector<int>> numbers_;
  std::set<std::pair<int, int>> successions_;
  int slots_ = 0;
};

// The different numbers of live microbatches of each chunk that the orders pass through.
using LiveCounts = std::set<std::vector<int>>;
LiveCounts live_counts(const Plan& plan) {
  LiveCounts counts;
  for (const Order& order : orders_of(plan)) {
    std::vector<int> live(plan.chunks());
    for (const int entry : order) {
      live[std::abs(entry) - 1] += entry > 0 ? 1 : -1;
      if (entry > 0) counts.insert(live);
    }
  }
  return counts;
}

// Largest weight that is live at once.
std::int64_t peak_weight(const LiveCounts& counts,
                         const std::vector<std::int64_t>& weight_of_chunk) {
  std::int64_t most = 0;
  for (const std::vector<int>& live : counts) {
    most = std::max(most, std::inner_product(live.begin(), live.end(), weight_of_chunk.begin(),
                                             std::int64_t{0}));
  }
  return most;
}

// How many layers of each chunk have a size in the range.
std::vector<std::int64_t> layers_between(const LayerBytes& bytes, std::int64_t low,
                                         std::int64_t high) {
  std::vector<std::int64_t> layers;
  for (const auto& chunk : bytes) {
    layers.push_back(std::count_if(chunk.begin(), chunk.end(),
                                   [&](std::int64_t size) { return size >= low && size <= high; }));
  }
  return layers;
}

std::vector<std::int64_t> distinct_sizes(const LayerBytes& bytes) {
  std::set<std::int64_t> sizes;
  for (const auto& chunk : bytes) sizes.insert(chunk.begin(), chunk.end());
  return {sizes.begin(), sizes.end()};
}

PackingScore bounds_of(const LiveCounts& counts, const LayerBytes& bytes) {
  std::vector<std::int64_t> weights;
  for (const auto& chunk : bytes)
    weights.push_back(std::accumulate(chunk.begin(), chunk.end(), std::int64_t{0}));
  PackingScore score;
  score.peak_bytes = score.clique_bytes = peak_weight(counts, weights);
  score.clique_heaviest = true;
  std::int64_t smaller = 0;
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t size : distinct_sizes(bytes)) {
    score.layered_bytes +=
        (size - smaller) * peak_weight(counts, layers_between(bytes, size, largest));
    smaller = size;
  }
  return score;
}

constexpr std::size_t kMostSizes = 64;  // that are told apart

// The cheapest cut of the sizes into classes, of which each has as many arenas of its largest size
// as its frames live at once. Dynamic programming over the distinct sizes; where there are very
// many, over some of them.
std::vector<SizeClass> cheapest_classes(const LiveCounts& counts, const LayerBytes& bytes) {
  const std::vector<std::int64_t> all = distinct_sizes(bytes);
  std::vector<std::int64_t> sizes;
  const std::size_t step = (all.size() + kMostSizes - 1) / kMostSizes;
  for (std::size_t i = all.size(); i > 0; i -= std::min(i, step)) sizes.push_back(all[i - 1]);
  std::reverse(sizes.begin(), sizes.end());
  const std::size_t count = sizes.size();
  struct Best {
    std::int64_t cost = 0;
    std::size_t first = 0;  // size of the last class
    std::int64_t arenas = 0;
  };
  std::vector<Best> best(count + 1);  // of the smallest sizes
  for (std::size_t end = 1; end <= count; ++end) {
    best[end].cost = std::numeric_limits<std::int64_t>::max();
    for (std::size_t first = 0; first < end; ++first) {
      const std::int64_t low = first == 0 ? 0 : sizes[first - 1] + 1;
      const std::int64_t arenas = peak_weight(counts, layers_between(bytes, low, sizes[end - 1]));
      const std::int64_t cost = best[first].cost + arenas * sizes[end - 1];
      if (cost < best[end].cost) best[end] = {cost, first, arenas};
    }
  }
  std::vector<SizeClass> classes;
  for (std::size_t end = count; end > 0; end = best[end].first)
    classes.push_back({sizes[end - 1], 0, static_cast<int>(best[end].arenas)});
  std::reverse(classes.begin(), classes.end());
  for (std::size_t i = 1; i < classes.size(); ++i)
    classes[i].first_arena = classes[i - 1].first_arena + classes[i - 1].arenas;
  return classes;
}

std::vector<Slot> emit(const Plan& plan, const Builder& builder, const Colouring& gradients) {
  std::vector<Slot> slots;
  int most_slots = 0;
  for (const auto& of_chunk : builder.numbers())
    most_slots = std::max(most_slots, static_cast<int>(of_chunk.size()));
  for (int variant = 0; variant < plan.variants(); ++variant) {
    int module = variant * plan.layers();
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      const auto& numbers = builder.numbers()[chunk];
      for (int slot = 0; slot < static_cast<int>(numbers.size()); ++slot) {
        for (int layer = 0; layer < plan.layers_per_chunk[chunk]; ++layer) {
          slots.push_back({builder.chooser().arenas(chunk, slot)[layer], slot,
                           variant * most_slots + slot, chunk, layer, module + layer,
                           gradients[numbers[slot]]});
        }
      }
      module += plan.layers_per_chunk[chunk];
    }
  }
  return slots;
}

[[noreturn]] void refuse(const char* rule, std::string where, std::string found,
                         std::string expected) {
  throw Error(Error::kInput,
              {rule, std::move(where), std::move(found), std::move(expected), "plan again"});
}

// The shape as a plan, to check what both have.
Plan shape_of(const FirstFreePlan& plan) {
  Plan result;
  result.shape = plan.shape;
  result.layers_per_chunk = plan.layers_per_chunk;
  result.cp_sizes = plan.cp_sizes;
  result.covered_counts = plan.covered_counts;
  return result;
}

void check_numbers(const FirstFreePlan& plan) {
  if (plan.slots_of_chunk.size() != plan.layers_per_chunk.size()) {
    refuse("FF1", "slots_of_chunk", fmt::format("{} chunks", plan.slots_of_chunk.size()),
           fmt::to_string(plan.layers_per_chunk.size()));
  }
  std::int64_t branches = 0;
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    if (plan.slots_of_chunk[chunk] < 0 || plan.slots_of_chunk[chunk] > kMostFrames) {
      refuse("FF1", "slots_of_chunk", fmt::to_string(plan.slots_of_chunk[chunk]),
             fmt::format("0 to {}", kMostFrames));
    }
    branches +=
        std::int64_t{plan.slots_of_chunk[chunk]} * plan.layers_per_chunk[chunk] * plan.variants();
  }
  if (branches != static_cast<std::int64_t>(plan.slots.size()))
    refuse("FF1", "slots", fmt::to_string(plan.slots.size()), fmt::to_string(branches));
}

// Fields in emission order, equal in all variants but for the branch and the module; sizes.
void check_fields(const FirstFreePlan& plan, const LayerBytes& bytes) {
  const std::size_t frames = plan.slots.size() / plan.cp_sizes.size();
  const int most_slots = *std::max_element(plan.slots_of_chunk.begin(), plan.slots_of_chunk.end());
  std::size_t index = 0;
  int module = 0;
  for (int variant = 0; variant < plan.variants(); ++variant) {
    for (int chunk = 0; chunk < plan.chunks(); module += plan.layers_per_chunk[chunk++]) {
      for (int slot = 0; slot < plan.slots_of_chunk[chunk]; ++slot) {
        for (int layer = 0; layer < plan.layers_per_chunk[chunk]; ++layer, ++index) {
          const Slot& found = plan.slots[index];
          const Slot& first = plan.slots[index % frames];
          const Slot expected{first.colour, slot,           variant * most_slots + slot, chunk,
                              layer,        module + layer, first.gradient_colour};
          const std::string where = fmt::format("slot {}", index);
          if (found != expected) {
            refuse(
                "FF1", where, "other fields",
                fmt::format("chunk {}, slot {}, layer {}, branch {}, module {}, and the arenas of "
                            "variant 0",
                            chunk, slot, layer, expected.io_branch_id, module + layer));
          }
          const int arena = found.colour;
          if (arena < 0 || arena >= static_cast<int>(plan.arena_bytes.size()))
            refuse("FF1", where, fmt::format("arena {}", arena), "an arena of the plan");
          if (plan.arena_bytes[arena] >= bytes[chunk][layer]) continue;
          refuse("FF3", where, fmt::format("{} bytes", plan.arena_bytes[arena]),
                 fmt::format("at least {}", bytes[chunk][layer]));
        }
      }
    }
  }
}

}  // namespace

void FirstFreeChooser::add_slot(int chunk, std::vector<int> arenas) {
  for (const int arena : arenas)
    used_.resize(std::max<std::size_t>(used_.size(), static_cast<std::size_t>(arena) + 1));
  chunks_[chunk].slots.push_back(std::move(arenas));
}

int FirstFreeChooser::forward(int chunk) {
  Chunk& mine = chunks_[chunk];
  for (int slot = 0; slot < static_cast<int>(mine.slots.size()); ++slot) {
    const auto& arenas = mine.slots[slot];
    const bool repeats = last_ == std::pair(chunk, slot) && mine.live.empty();
    // A slot without arenas is live as long as its microbatch is.
    if (repeats || std::find(mine.live.begin(), mine.live.end(), slot) != mine.live.end() ||
        std::any_of(arenas.begin(), arenas.end(), [this](int arena) { return used_[arena] != 0; }))
      continue;
    for (const int arena : arenas) used_[arena] = 1;
    mine.live.push_back(slot);
    return slot;
  }
  return -1;
}

int FirstFreeChooser::backward(int chunk) {
  Chunk& mine = chunks_[chunk];
  const int slot = mine.live.front();
  mine.live.erase(mine.live.begin());
  for (const int arena : mine.slots[slot]) used_[arena] = 0;
  last_ = {chunk, slot};
  return slot;
}

PackedFirstFree pack_first_free(const Plan& plan, const LayerBytes& bytes) {
  check_bytes(plan, bytes);
  PackedFirstFree result;
  const LiveCounts counts = live_counts(plan);
  result.score = bounds_of(counts, bytes);
  const std::vector<SizeClass> classes = cheapest_classes(counts, bytes);
  const Builder builder(plan, bytes, classes);
  ConflictGraph successive(builder.slots());
  for (const auto& [first, second] : builder.successions()) successive.connect(first, second);
  result.plan = {plan.name,
                 plan.shape,
                 plan.layers_per_chunk,
                 plan.cp_sizes,
                 plan.covered_counts,
                 {},
                 {},
                 emit(plan, builder, dsatur(successive))};
  for (const SizeClass& each : classes)
    result.plan.arena_bytes.insert(result.plan.arena_bytes.end(), each.arenas, each.size);
  for (const auto& numbers : builder.numbers())
    result.plan.slots_of_chunk.push_back(static_cast<int>(numbers.size()));
  result.score.arena_bytes = std::accumulate(result.plan.arena_bytes.begin(),
                                             result.plan.arena_bytes.end(), std::int64_t{0});
  result.score.executables = static_cast<std::int64_t>(result.plan.slots.size());
  result.score.optimal = result.score.arena_bytes <= result.score.lower_bound();
  return result;
}

void check(const FirstFreePlan& plan, const LayerBytes& bytes) {
  const Plan shape = shape_of(plan);
  check_shape(shape);
  check_bytes(shape, bytes);
  check_numbers(plan);
  check_fields(plan, bytes);
  FirstFreeChooser chooser(plan.chunks());
  std::vector<std::vector<int>> gradients(plan.chunks());  // colour of each slot; -1 without layers
  std::size_t index = 0;
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    for (int slot = 0; slot < plan.slots_of_chunk[chunk]; ++slot) {
      std::set<int> arenas;
      std::vector<int> of_layers;
      gradients[chunk].push_back(-1);
      for (int layer = 0; layer < plan.layers_per_chunk[chunk]; ++layer, ++index) {
        of_layers.push_back(plan.slots[index].colour);
        if (!arenas.insert(of_layers.back()).second)
          refuse("FF4", fmt::format("slot {}", index), "the arena of another layer", "its own");
        gradients[chunk].back() = plan.slots[index].gradient_colour;
      }
      chooser.add_slot(chunk, std::move(of_layers));
    }
  }
  for (const int count : dominating_counts(plan.shape, plan.covered_counts)) {
    chooser.start_step();
    int last = -1;
    for (const OrderEvent& event : events(training_order(plan.shape, count))) {
      const int slot = event.forward ? chooser.forward(event.chunk) : chooser.backward(event.chunk);
      const auto where = [&] {
        return fmt::format("order of {} microbatches, {} {} of chunk {}", count,
                           event.forward ? "forward" : "backward", event.microbatch, event.chunk);
      };
      if (slot < 0) refuse("FF2", where(), "no free slot", "one");
      if (event.forward) continue;
      const int mine = gradients[event.chunk][slot];
      if (mine >= 0 && mine == last)
        refuse("FF5", where(), fmt::format("gradient colour {}", mine), "not that of the last one");
      last = mine;
    }
  }
}

}  // namespace slotgraph

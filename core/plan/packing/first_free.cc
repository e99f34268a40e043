#include "core/plan/packing/first_free.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/order/microbatch_counts.h"
#include "core/plan/colouring.h"
#include "core/plan/conflicts.h"

namespace slotgraph {
namespace {

// One slot while it is planned.
struct Instance {
  int chunk;
  std::vector<int> arenas;  // of each layer
};

std::vector<Order> orders_of(const Plan& plan) {
  std::vector<Order> orders;
  for (const int count : dominating_counts(plan.shape, plan.covered_counts))
    orders.push_back(training_order(plan.shape, count));
  return orders;
}

// Arenas of equal size and the frames that use them: those of at least `smallest` and at most
// `size` bytes.
struct SizeClass {
  std::int64_t smallest;
  std::int64_t size;
  int first_arena;
  int arenas;
};

// Runs the orders and makes a slot wherever none is free, from the first free arenas of each
// layer's class. A class has as many arenas as its frames live at once, so one is always free.
class Builder {
 public:
  Builder(const Plan& plan, const LayerBytes& bytes, const std::vector<SizeClass>& classes)
      : slots_of_chunk_(plan.chunks()), live_(plan.chunks()) {
    used_.resize(classes.empty() ? 0 : classes.back().first_arena + classes.back().arenas);
    for (const auto& chunk : bytes) {
      class_of_layer_.emplace_back();
      for (const std::int64_t size : chunk) {
        class_of_layer_.back().push_back(*std::find_if(
            classes.begin(), classes.end(), [size](const SizeClass& c) { return size <= c.size; }));
      }
    }
    for (const Order& order : orders_of(plan)) run(order);
  }

  const std::vector<Instance>& instances() const { return instances_; }
  const std::vector<std::vector<int>>& slots_of_chunk() const { return slots_of_chunk_; }
  const std::set<std::pair<int, int>>& successions() const { return successions_; }

 private:
  void run(const Order& order) {
    last_ = -1;
    for (const int entry : order) {
      const int chunk = std::abs(entry) - 1;
      if (entry > 0) {
        int instance = find_free(chunk);
        if (instance < 0) instance = make(chunk);
        for (const int arena : instances_[instance].arenas) used_[arena] = 1;
        live_[chunk].push_back(instance);
        continue;
      }
      const int instance = live_[chunk].front();
      live_[chunk].erase(live_[chunk].begin());
      for (const int arena : instances_[instance].arenas) used_[arena] = 0;
      if (last_ >= 0) successions_.emplace(last_, instance);
      last_ = instance;
    }
  }

  int find_free(int chunk) const {
    for (const int instance : slots_of_chunk_[chunk]) {
      const auto& arenas = instances_[instance].arenas;
      const bool is_free = std::none_of(arenas.begin(), arenas.end(),
                                        [this](int arena) { return used_[arena] != 0; });
      // A slot without arenas is live as long as its microbatch is.
      const auto& live = live_[chunk];
      const bool is_live = std::find(live.begin(), live.end(), instance) != live.end();
      if (is_free && !is_live && (instance != last_ || !live.empty())) return instance;
    }
    return -1;
  }

  int make(int chunk) {
    Instance instance{chunk, {}};
    std::vector<char> taken = used_;
    for (const SizeClass& of_layer : class_of_layer_[chunk]) {
      int arena = of_layer.first_arena;
      while (taken[arena]) ++arena;
      taken[arena] = 1;
      instance.arenas.push_back(arena);
    }
    const int number = static_cast<int>(instances_.size());
    instances_.push_back(std::move(instance));
    slots_of_chunk_[chunk].push_back(number);
    return number;
  }

  std::vector<std::vector<SizeClass>> class_of_layer_;  // of each chunk
  std::vector<Instance> instances_;
  std::vector<std::vector<int>> slots_of_chunk_;  // instances, by slot number
  std::vector<std::vector<int>> live_;            // instances of each chunk, oldest first
  std::set<std::pair<int, int>> successions_;     // instances of consecutive backwards
  std::vector<char> used_;                        // arenas
  int last_ = -1;                                 // instance of the last backward
};

// Largest weight that the orders make live at once.
std::int64_t peak_weight(const Plan& plan, const std::vector<std::int64_t>& weight_of_chunk) {
  std::int64_t most = 0;
  for (const Order& order : orders_of(plan)) {
    std::int64_t live = 0;
    for (const int entry : order) {
      live += entry > 0 ? weight_of_chunk[entry - 1] : -weight_of_chunk[-entry - 1];
      most = std::max(most, live);
    }
  }
  return most;
}

struct Peak {
  std::int64_t size;
  std::int64_t frames;  // of at least that size, most that live at once
};

std::vector<Peak> peaks_of(const Plan& plan, const LayerBytes& bytes) {
  std::set<std::int64_t> sizes;
  for (const auto& chunk : bytes) sizes.insert(chunk.begin(), chunk.end());
  std::vector<Peak> peaks;
  for (const std::int64_t size : sizes) {
    std::vector<std::int64_t> frames;
    for (const auto& chunk : bytes) {
      frames.push_back(std::count_if(chunk.begin(), chunk.end(),
                                     [size](std::int64_t each) { return each >= size; }));
    }
    peaks.push_back({size, peak_weight(plan, frames)});
  }
  return peaks;
}

PackingScore bounds_of(const Plan& plan, const LayerBytes& bytes) {
  std::vector<std::int64_t> weights;
  for (const auto& chunk : bytes)
    weights.push_back(std::accumulate(chunk.begin(), chunk.end(), std::int64_t{0}));
  PackingScore score;
  score.peak_bytes = score.clique_bytes = peak_weight(plan, weights);
  score.clique_heaviest = true;
  std::int64_t smaller = 0;
  for (const Peak& peak : peaks_of(plan, bytes)) {
    score.layered_bytes += (peak.size - smaller) * peak.frames;
    smaller = peak.size;
  }
  return score;
}

// The cheapest cut of the sizes into classes, of which each has as many arenas of its largest size
// as its frames live at once. Dynamic programming over the distinct sizes.
std::vector<SizeClass> cheapest_classes(const Plan& plan, const LayerBytes& bytes) {
  std::vector<std::int64_t> sizes;
  for (const auto& chunk : bytes) sizes.insert(sizes.end(), chunk.begin(), chunk.end());
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
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
      std::vector<std::int64_t> frames;
      for (const auto& chunk : bytes) {
        frames.push_back(std::count_if(chunk.begin(), chunk.end(), [&](std::int64_t size) {
          return size >= sizes[first] && size <= sizes[end - 1];
        }));
      }
      const std::int64_t arenas = peak_weight(plan, frames);
      const std::int64_t cost = best[first].cost + arenas * sizes[end - 1];
      if (cost < best[end].cost) best[end] = {cost, first, arenas};
    }
  }
  std::vector<SizeClass> classes;
  for (std::size_t end = count; end > 0; end = best[end].first) {
    classes.push_back(
        {sizes[best[end].first], sizes[end - 1], 0, static_cast<int>(best[end].arenas)});
  }
  std::reverse(classes.begin(), classes.end());
  for (std::size_t i = 1; i < classes.size(); ++i)
    classes[i].first_arena = classes[i - 1].first_arena + classes[i - 1].arenas;
  return classes;
}

std::vector<Slot> emit(const Plan& plan, const Builder& builder, const Colouring& gradients) {
  std::vector<Slot> slots;
  int most_slots = 0;
  for (const auto& of_chunk : builder.slots_of_chunk())
    most_slots = std::max(most_slots, static_cast<int>(of_chunk.size()));
  for (int variant = 0; variant < plan.variants(); ++variant) {
    int module = variant * plan.layers();
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      const auto& of_chunk = builder.slots_of_chunk()[chunk];
      for (int slot = 0; slot < static_cast<int>(of_chunk.size()); ++slot) {
        const Instance& instance = builder.instances()[of_chunk[slot]];
        for (int layer = 0; layer < plan.layers_per_chunk[chunk]; ++layer) {
          slots.push_back({instance.arenas[layer], slot, variant * most_slots + slot, chunk, layer,
                           module + layer, gradients[of_chunk[slot]]});
        }
      }
      module += plan.layers_per_chunk[chunk];
    }
  }
  return slots;
}

}  // namespace

FirstFreeChooser::FirstFreeChooser(const FirstFreePlan& plan)
    : plan_(plan), used_(plan.arena_bytes.size()), live_(plan.chunks()) {
  int first = 0;
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    first_slot_.push_back(first);
    first += plan.slots_of_chunk[chunk] * plan.layers_per_chunk[chunk];
  }
}

int FirstFreeChooser::arena(int chunk, int slot, int layer) const {
  const int index = first_slot_[chunk] + slot * plan_.layers_per_chunk[chunk] + layer;
  return plan_.slots[index].saved_arena_id;
}

int FirstFreeChooser::forward(int chunk) {
  const int layers = plan_.layers_per_chunk[chunk];
  auto& live = live_[chunk];
  for (int slot = 0; slot < plan_.slots_of_chunk[chunk]; ++slot) {
    bool is_free = (chunk != last_chunk_ || slot != last_slot_ || !live.empty()) &&
                   std::find(live.begin(), live.end(), slot) == live.end();
    for (int layer = 0; layer < layers && is_free; ++layer)
      is_free = !used_[arena(chunk, slot, layer)];
    if (!is_free) continue;
    for (int layer = 0; layer < layers; ++layer) used_[arena(chunk, slot, layer)] = 1;
    live.push_back(slot);
    return slot;
  }
  return -1;
}

int FirstFreeChooser::backward(int chunk) {
  const int slot = live_[chunk].front();
  live_[chunk].erase(live_[chunk].begin());
  for (int layer = 0; layer < plan_.layers_per_chunk[chunk]; ++layer)
    used_[arena(chunk, slot, layer)] = 0;
  last_chunk_ = chunk;
  last_slot_ = slot;
  return slot;
}

PackedFirstFree pack_first_free(const Plan& plan, const LayerBytes& bytes) {
  check_bytes(plan, bytes);
  PackedFirstFree result;
  result.score = bounds_of(plan, bytes);
  const std::vector<SizeClass> classes = cheapest_classes(plan, bytes);
  const Builder builder(plan, bytes, classes);
  ConflictGraph successive(static_cast<int>(builder.instances().size()));
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
  for (const auto& of_chunk : builder.slots_of_chunk())
    result.plan.slots_of_chunk.push_back(static_cast<int>(of_chunk.size()));
  result.score.arena_bytes = std::accumulate(result.plan.arena_bytes.begin(),
                                             result.plan.arena_bytes.end(), std::int64_t{0});
  result.score.executables = static_cast<std::int64_t>(result.plan.slots.size());
  result.score.optimal = result.score.arena_bytes <= result.score.layered_bytes;
  return result;
}

void check(const FirstFreePlan& plan, const LayerBytes& bytes) {
  const auto refuse = [](const char* rule, std::string where, std::string found,
                         std::string expected) {
    throw Error({rule, std::move(where), std::move(found), std::move(expected), "plan again"});
  };
  std::size_t branches = 0;
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    branches += static_cast<std::size_t>(plan.slots_of_chunk[chunk]) *
                static_cast<std::size_t>(plan.layers_per_chunk[chunk]) * plan.cp_sizes.size();
  }
  if (branches != plan.slots.size())
    refuse("FF1", "slots", fmt::to_string(plan.slots.size()), fmt::to_string(branches));
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot& slot = plan.slots[i];
    const std::string where = fmt::format("slot {}", i);
    if (slot.saved_arena_id < 0 || slot.saved_arena_id >= static_cast<int>(plan.arena_bytes.size()))
      refuse("FF1", where, fmt::format("arena {}", slot.saved_arena_id), "an arena of the plan");
    if (plan.arena_bytes[slot.saved_arena_id] < bytes[slot.model_chunk][slot.layer]) {
      refuse("FF3", where, fmt::format("{} bytes", plan.arena_bytes[slot.saved_arena_id]),
             fmt::format("at least {}", bytes[slot.model_chunk][slot.layer]));
    }
  }
  // The gradient colour of each slot with layers.
  std::map<std::pair<int, int>, int> gradients;
  for (const Slot& slot : plan.slots)
    gradients[{slot.model_chunk, slot.physical_slot}] = slot.user_grad_arena_id;
  for (const int count : plan.covered_counts) {
    FirstFreeChooser chooser(plan);
    std::vector<char> used(plan.arena_bytes.size());
    int last_gradient = -1;
    for (const OrderEvent& event : events(training_order(plan.shape, count))) {
      const std::string where =
          fmt::format("order of {} microbatches, {} {} of chunk {}", count,
                      event.forward ? "forward" : "backward", event.microbatch, event.chunk);
      const int slot = event.forward ? chooser.forward(event.chunk) : chooser.backward(event.chunk);
      if (slot < 0) refuse("FF2", where, "no free slot", "one");
      for (int layer = 0; layer < plan.layers_per_chunk[event.chunk]; ++layer) {
        char& in_use = used[chooser.arena(event.chunk, slot, layer)];
        if (event.forward && in_use)
          refuse("FF4", where, "an arena of a live frame", "a free arena");
        in_use = event.forward;
      }
      if (event.forward) continue;
      const auto gradient = gradients.find({event.chunk, slot});
      const int mine = gradient == gradients.end() ? -1 : gradient->second;
      if (mine >= 0 && mine == last_gradient)
        refuse("FF5", where, fmt::format("gradient colour {}", mine), "not that of the last one");
      last_gradient = mine;
    }
  }
}

}  // namespace slotgraph

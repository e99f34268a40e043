#include "core/testing/decision_oracle.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

namespace slotgraph::testing {
namespace {

using Integer = std::int64_t;

// Rules in the order of precedence. A predicate may rely on the rules before it.
template <typename Value>
struct Rule {
  const char* id;
  bool (*broken)(const Value&);
};

template <typename Value, std::size_t kSize>
std::string first_broken(const Rule<Value> (&rules)[kSize], const Value& value) {
  const auto* rule =
      std::find_if(rules, rules + kSize, [&](const auto& rule) { return rule.broken(value); });
  return rule == rules + kSize ? "" : rule->id;
}

// How many different values a projection has.
template <typename Values, typename Projection>
std::size_t distinct(const Values& values, Projection projection) {
  std::set<std::decay_t<std::invoke_result_t<Projection, const typename Values::value_type&>>> set;
  for (const auto& value : values) set.insert(std::invoke(projection, value));
  return set.size();
}

template <typename Values, typename Predicate>
bool any(const Values& values, Predicate predicate) {
  return std::any_of(values.begin(), values.end(), predicate);
}

template <typename Value>
bool unsorted(const std::vector<Value>& values, bool (*before)(Value, Value)) {
  return std::adjacent_find(values.begin(), values.end(),
                            [&](Value a, Value b) { return !before(a, b); }) != values.end();
}

Integer total(const std::vector<int>& numbers, std::size_t end) {
  Integer sum = 0;
  for (std::size_t i = 0; i < end; ++i) sum += numbers[i];
  return sum;
}

// --- Orders ---

// One microbatch in one chunk, live from its forward to its backward.
struct Pass {
  int chunk;
  int microbatch;
  Integer begin;  // position of the forward in the order
  Integer end;    // position of the backward
};

// The training order as a formula: where the k-th forward and the k-th backward stand, and which k
// a microbatch has in a chunk.
std::vector<Pass> step_passes(const PipelineShape& shape, Integer microbatches) {
  const Integer chunks = std::max(shape.virtual_stages, 1);
  const Integer group = shape.virtual_stages == 0 ? 1 : shape.microbatch_group_size;
  const Integer all = microbatches * chunks;
  const Integer behind = shape.pipeline_size - shape.rank - 1;
  const Integer wanted = shape.virtual_stages == 0 ? behind : 2 * behind + (chunks - 1) * group;
  const Integer warm_up = std::min(wanted, all);
  std::vector<Pass> passes;
  for (Integer microbatch = 0; microbatch < microbatches; ++microbatch) {
    const Integer first = microbatch / group * group;  // of its group
    const Integer members = std::min(group, microbatches - first);
    for (Integer chunk = 0; chunk < chunks; ++chunk) {
      const auto turn = [&](Integer place) {
        return first * chunks + place * members + microbatch - first;
      };
      const Integer forward = turn(chunk), backward = turn(chunks - 1 - chunk);
      passes.push_back({static_cast<int>(chunk), static_cast<int>(microbatch),
                        forward < warm_up ? forward : 2 * forward - warm_up,
                        backward < all - warm_up ? warm_up + 2 * backward + 1 : all + backward});
    }
  }
  return passes;
}

// Where each entry of an order occurs, ascending.
template <typename Entry>
std::map<Integer, std::vector<Integer>> positions(const std::vector<Entry>& order) {
  std::map<Integer, std::vector<Integer>> result;
  for (std::size_t i = 0; i < order.size(); ++i)
    result[static_cast<Integer>(order[i])].push_back(static_cast<Integer>(i));
  return result;
}

// OR1: each of 2 * chunks entries must occur, all equally often, and nothing else.
template <typename Entry>
bool unbalanced(const std::vector<Entry>& order, Integer chunks) {
  const auto at = positions(order);
  return static_cast<Integer>(at.size()) != 2 * chunks || any(at, [&](const auto& entry) {
           return entry.first == 0 || std::abs(entry.first) > chunks ||
                  entry.second.size() != at.begin()->second.size();
         });
}

// Of a balanced order.
template <typename Entry>
std::vector<Pass> order_passes(const std::vector<Entry>& order) {
  std::vector<Pass> passes;
  const auto at = positions(order);
  for (const auto& [entry, begins] : at) {
    for (std::size_t m = 0; entry > 0 && m < begins.size(); ++m)
      passes.push_back(
          {static_cast<int>(entry - 1), static_cast<int>(m), begins[m], at.at(-entry)[m]});
  }
  return passes;
}

bool ends_before_it_begins(const Pass& pass) { return pass.end < pass.begin; }

// --- Liveness ---

constexpr Integer kNever = LLONG_MAX;

struct Interval {
  Integer key;
  Integer begin;
  Integer end;
};

// The earliest begin of an interval that overlaps an earlier one of its key. Up to there the
// intervals of the key are disjoint, so neighbours suffice.
Integer first_overlap(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    return std::tie(a.key, a.begin) < std::tie(b.key, b.begin);
  });
  Integer first = kNever;
  for (std::size_t i = 1; i < intervals.size(); ++i) {
    const Interval &before = intervals[i - 1], &after = intervals[i];
    if (before.key == after.key && after.begin <= before.end) first = std::min(first, after.begin);
  }
  return first;
}

// The position of the first backward with the key of the backward before it; negative keys are no
// partners.
Integer first_repeat(std::vector<Pass> passes, const std::function<Integer(const Pass&)>& key) {
  std::sort(passes.begin(), passes.end(),
            [](const Pass& a, const Pass& b) { return a.end < b.end; });
  const auto before = std::adjacent_find(
      passes.begin(), passes.end(),
      [&](const Pass& a, const Pass& b) { return key(a) == key(b) && key(a) >= 0; });
  return before == passes.end() ? kNever : std::next(before)->end;
}

std::string liveness_violation(const Plan& plan, const std::vector<Pass>& passes) {
  const auto slot = [&](const Pass& pass) { return pass.microbatch % plan.ring_length; };
  const auto place = [&](const Pass& pass) -> Integer {
    return static_cast<Integer>(pass.chunk) * plan.ring_length + slot(pass);
  };
  const auto gradient_colour = [&](const Pass& pass) -> Integer {
    return plan.gradient_colours[pass.chunk][slot(pass)];
  };
  // A chunk without layers returns no gradient.
  const auto returned = [&](Integer key, const Pass& pass) {
    return plan.layers_per_chunk[pass.chunk] == 0 ? Integer{-1} : key;
  };
  std::vector<Interval> places, arenas;
  for (const Pass& pass : passes) {
    places.push_back({place(pass), pass.begin, pass.end});
    const Integer layers = plan.layers_per_chunk[pass.chunk];
    const Integer frame =
        total(plan.layers_per_chunk, pass.chunk) * plan.ring_length + slot(pass) * layers;
    for (Integer layer = 0; layer < layers; ++layer)
      arenas.push_back({plan.slots[frame + layer].colour, pass.begin, pass.end});
  }
  const std::pair<const char*, Integer> rules[] = {
      {"PL14", std::min(first_overlap(places), first_repeat(passes,
                                                            [&](const Pass& pass) {
                                                              return returned(place(pass), pass);
                                                            }))},
      {"PL04", first_overlap(arenas)},
      {"PL05", first_repeat(passes, [&](const Pass& pass) {
         return returned(gradient_colour(pass), pass);
       })}};
  const auto* first =
      std::min_element(std::begin(rules), std::end(rules),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return first->second == kNever ? "" : first->first;
}

// One for each order that breaks a rule, in the order of the orders.
std::vector<std::string> liveness_decisions(const Plan& plan) {
  std::vector<std::string> decisions;
  const auto look = [&](const std::vector<Pass>& passes) {
    const std::string rule = liveness_violation(plan, passes);
    if (!rule.empty()) decisions.push_back(rule);
  };
  if (plan.slots.empty()) return decisions;
  for (const int count : plan.covered_counts) look(step_passes(plan.shape, count));
  look(order_passes(plan.base_order));
  return decisions;
}

// --- Plans ---

constexpr int Slot::*kFields[] = {&Slot::colour,         &Slot::physical_slot, &Slot::io_branch_id,
                                  &Slot::model_chunk,    &Slot::layer,         &Slot::module,
                                  &Slot::gradient_colour};

auto frame(const Slot& slot) {
  return std::tuple(slot.physical_slot, slot.model_chunk, slot.layer);
}

Integer layers(const Plan& plan) {
  return total(plan.layers_per_chunk, plan.layers_per_chunk.size());
}

// Of every slot, in emission order: what its place in the list says of it.
struct Position {
  Integer chunk;
  Integer slot;
  Integer layer;
  Integer module;
};
std::vector<Position> emission(const Plan& plan) {
  std::vector<Position> result;
  for (Integer variant = 0; variant < static_cast<Integer>(plan.cp_sizes.size()); ++variant)
    for (std::size_t chunk = 0; chunk < plan.layers_per_chunk.size(); ++chunk)
      for (Integer slot = 0; slot < plan.ring_length; ++slot)
        for (Integer layer = 0; layer < plan.layers_per_chunk[chunk]; ++layer)
          result.push_back({static_cast<Integer>(chunk), slot, layer,
                            variant * layers(plan) + total(plan.layers_per_chunk, chunk) + layer});
  return result;
}

// Whether any slot and its place in the list fail a comparison.
bool any_slot(const Plan& plan, bool (*differs)(const Slot&, const Position&)) {
  return !std::equal(plan.slots.begin(), plan.slots.end(), emission(plan).begin(),
                     [&](const Slot& slot, const Position& at) { return !differs(slot, at); });
}

bool shape_out_of_range(const Plan& plan) {
  const auto negative = [](int number) { return number < 0; };
  const auto not_positive = [](int number) { return number <= 0; };
  return static_cast<Integer>(plan.layers_per_chunk.size()) !=
             (plan.shape.virtual_stages == 0 ? 1 : plan.shape.virtual_stages) ||
         any(plan.layers_per_chunk, negative) || plan.cp_sizes.empty() ||
         any(plan.cp_sizes, not_positive) ||
         unsorted<int>(plan.cp_sizes, [](int a, int b) { return a > b; }) || plan.ring_length < 1 ||
         plan.covered_counts.empty() ||
         unsorted<int>(plan.covered_counts, [](int a, int b) { return a < b; });
}

bool wrong_sizes(const Plan& plan) {
  const bool graphs = layers(plan) > 0;
  return static_cast<Integer>(plan.slots.size()) !=
             static_cast<Integer>(plan.cp_sizes.size()) * plan.ring_length * layers(plan) ||
         static_cast<Integer>(plan.base_order.size()) !=
             2 * static_cast<Integer>(plan.layers_per_chunk.size()) * plan.ring_length ||
         plan.gradient_colours.size() != (graphs ? plan.layers_per_chunk.size() : 0) ||
         any(plan.gradient_colours, [&](const std::vector<int>& colours) {
           return static_cast<Integer>(colours.size()) != plan.ring_length;
         });
}

bool no_pipeline(const Plan& plan) {
  const PipelineShape& shape = plan.shape;
  return shape.pipeline_size < 1 || shape.rank < 0 || shape.rank >= shape.pipeline_size ||
         shape.virtual_stages < 0 || (shape.pipeline_size == 1 && shape.virtual_stages != 0) ||
         (shape.virtual_stages != 0 && shape.microbatch_group_size < 1);
}

bool unschedulable(const Plan& plan, int count) {
  const int pipeline = plan.shape.pipeline_size, group = plan.shape.microbatch_group_size;
  if (plan.shape.virtual_stages == 0) return false;
  const int rest = count % group;
  return pipeline > group || group > count || (rest != 0 && rest < pipeline);
}

// OP1 and OP2 of the first count that has one: a count below 1 is out of range, not unschedulable.
const char* count_violation(const Plan& plan) {
  for (const int count : plan.covered_counts) {
    if (count < 1 || no_pipeline(plan)) return "OP1";
    if (unschedulable(plan, count)) return "OP2";
  }
  return "";
}

constexpr Rule<Plan> kPlanRules[] = {
    {"PL00", shape_out_of_range},
    {"PL00", wrong_sizes},
    {"OP1", [](const Plan& plan) { return count_violation(plan) == std::string("OP1"); }},
    {"OP2", [](const Plan& plan) { return count_violation(plan) == std::string("OP2"); }},
    {"PL01",
     [](const Plan& plan) {
       const auto limit =
           static_cast<Integer>(std::max(plan.slots.size(), plan.layers_per_chunk.size()));
       const auto outside = [&](int number) { return number < 0 || number >= limit; };
       return any(plan.slots,
                  [&](const Slot& slot) {
                    return any(std::vector(std::begin(kFields), std::end(kFields)),
                               [&](int Slot::*field) { return outside(slot.*field); });
                  }) ||
              any(plan.gradient_colours,
                  [&](const std::vector<int>& colours) { return any(colours, outside); });
     }},
    {"PL09",
     [](const Plan& plan) {
       return any(plan.slots, [&](const Slot& slot) {
         return slot.model_chunk < static_cast<Integer>(plan.layers_per_chunk.size()) &&
                plan.layers_per_chunk[slot.model_chunk] == 0;
       });
     }},
    {"PL13",
     [](const Plan& plan) {
       return any_slot(plan, [](const Slot& slot, const Position& at) {
         return frame(slot) != std::tuple(at.slot, at.chunk, at.layer);
       });
     }},
    {"PL08",
     [](const Plan& plan) {
       return any_slot(
           plan, [](const Slot& slot, const Position& at) { return slot.module != at.module; });
     }},
    {"PL02",
     [](const Plan& plan) {
       const auto branch = [](const Slot& slot) {
         return std::tuple_cat(frame(slot), std::tuple(slot.io_branch_id));
       };
       return distinct(plan.slots, branch) != plan.slots.size();
     }},
    {"PL03",
     [](const Plan& plan) {
       const auto shared = [](const Slot& slot) {
         return std::tuple_cat(frame(slot), std::tuple(slot.colour, slot.gradient_colour));
       };
       return distinct(plan.slots, shared) != distinct(plan.slots, frame);
     }},
    {"PL06",
     [](const Plan& plan) {
       return any(plan.slots, [&](const Slot& slot) {
         return slot.gradient_colour != plan.gradient_colours[slot.model_chunk][slot.physical_slot];
       });
     }},
    {"OR1",
     [](const Plan& plan) {
       return unbalanced(plan.base_order, static_cast<Integer>(plan.layers_per_chunk.size()));
     }},
    {"OR2",
     [](const Plan& plan) { return any(order_passes(plan.base_order), ends_before_it_begins); }},
};

// --- Capture calls ---

bool is_whole(double entry) { return std::ceil(entry) == entry; }
bool is_delayed(double entry) { return !is_whole(entry); }

bool is_no_entry(double entry) {
  if (!std::isfinite(entry) || entry == 0) return true;
  return is_delayed(entry) && (entry > -1 || std::ceil(entry) - entry != 0.5);
}

OrderEntries whole_entries(const CaptureCall& call) {
  OrderEntries result;
  const OrderEntries order = call.order.value_or(OrderEntries());
  std::copy_if(order.begin(), order.end(), std::back_inserter(result), is_whole);
  return result;
}

bool delays(const CaptureCall& call) { return call.order && any(*call.order, is_delayed); }

// K and M.
std::pair<Integer, Integer> extent(const CaptureCall& call) {
  Integer chunks = 0;
  const OrderEntries events = whole_entries(call);
  for (const double event : events)
    chunks = std::max(chunks, static_cast<Integer>(std::abs(event)));
  return {chunks, chunks == 0 ? 0 : static_cast<Integer>(events.size()) / chunks / 2};
}

// One whole entry of an order with the frames of its layers. The order need not be balanced.
struct Event {
  bool forward;
  Integer layers;
  Integer microbatch;
  Integer first_frame;
  Integer first_module;
};

std::vector<Event> events(const CaptureCall& call) {
  const std::vector<int>& layers_of = call.layers;
  const Integer microbatches = extent(call).second;
  std::map<double, Integer> passed;  // events of each entry
  std::vector<Event> result;
  for (const double entry : whole_entries(call)) {
    const std::size_t chunk = static_cast<std::size_t>(std::abs(entry)) - 1;
    const Integer microbatch = passed[entry]++;
    const Integer prefix = total(layers_of, chunk);
    result.push_back({entry > 0, layers_of[chunk], microbatch,
                      prefix * microbatches + microbatch * layers_of[chunk], prefix});
  }
  return result;
}

// Frame and module of every layer that the order runs forward.
std::vector<std::pair<Integer, Integer>> forward_frames(const CaptureCall& call) {
  std::vector<std::pair<Integer, Integer>> result;
  for (const Event& event : events(call))
    for (Integer layer = 0; event.forward && layer < event.layers; ++layer)
      result.emplace_back(event.first_frame + layer, event.first_module + layer);
  return result;
}

bool wrong_layers(const CaptureCall& call) {
  if (!call.order) return false;
  return static_cast<Integer>(call.layers.size()) != extent(call).first ||
         any(call.layers, [](int number) { return number < 0; });
}

bool wrong_numbers(const CaptureCall& call) {
  const auto callables = static_cast<Integer>(call.callables.size());
  if (!call.order) return call.samples != callables;
  const std::vector<int>& layers_of = call.layers;
  const Integer sum = total(layers_of, layers_of.size());
  return callables != sum || call.samples != sum * extent(call).second;
}

bool evaluates(const CaptureCall& call) {
  return any(call.callables, [](const auto& module) { return !module.training; });
}

// Every event with layers belongs to the run that began last.
bool branch_twice_in_a_run(const CaptureCall& call) {
  std::set<std::pair<Integer, Integer>> branches;  // of each run
  std::vector<Integer> before;                     // the key; empty without a record
  Integer run = 0;
  std::size_t records = 0;
  for (const Event& event : events(call)) {
    std::vector<Integer> key;
    if (event.layers > 0) {
      const auto& slot = (*call.slots)[event.first_frame];
      key = {event.forward, slot[3], event.microbatch, slot[1], event.layers};
      run += key != before;
      branches.emplace(run, slot[2]);
      ++records;
    }
    before = key;
  }
  return branches.size() != records;
}

bool different_modules_in_a_group(const CaptureCall& call) {
  std::set<std::pair<Integer, int>> members;
  std::set<Integer> groups;
  for (const auto& [frame, module] : forward_frames(call)) {
    groups.insert((*call.slots)[frame][5]);
    members.emplace((*call.slots)[frame][5], call.callables[module].object);
  }
  return members.size() != groups.size();
}

constexpr Rule<CaptureCall> kEveryCall[] = {
    {"OR1",
     [](const CaptureCall& call) {
       return call.order && any(*call.order, [&](double entry) {
                return is_no_entry(entry) ||
                       (is_delayed(entry) &&
                        -entry - 0.5 > static_cast<double>(extent(call).first));
              });
     }},
    {"C01", [](const CaptureCall& call) { return call.autocast_caches_weights; }},
    {"C02",
     [](const CaptureCall& call) {
       return distinct(call.callables, &CaptureCall::Module::training) > 1;
     }},
    {"C03",
     [](const CaptureCall& call) {
       const auto [chunks, microbatches] = extent(call);
       const auto events = static_cast<Integer>(whole_entries(call).size());
       return call.order && (events == 0 || events != chunks * microbatches * 2);
     }},
    {"C04",
     [](const CaptureCall& call) {
       return delays(call) && any(call.layers, [](int number) { return number != 1; });
     }},
    {"C05", wrong_layers},
    {"C06", wrong_numbers},
    {"C07", [](const CaptureCall& call) { return call.slots && !call.native_allocator; }},
};

constexpr Rule<CaptureCall> kSlotCall[] = {
    {"C11", evaluates},
    {"C12", [](const CaptureCall& call) { return !call.order; }},
    {"OP5", delays},
    {"C15",
     [](const CaptureCall& call) {
       return static_cast<Integer>(call.slots->size()) != call.samples;
     }},
    {"C16",
     [](const CaptureCall& call) {
       return any(*call.slots, [](const auto& slot) { return slot.size() != 7; });
     }},
    {"C18", [](const CaptureCall& call) { return call.tensors.buffer_requires_grad.has_value(); }},
    {"C19", [](const CaptureCall& call) { return call.tensors.positional.has_value(); }},
    {"C20", [](const CaptureCall& call) { return call.tensors.named.has_value(); }},
    {"C21", [](const CaptureCall& call) { return call.tensors.state_alias.has_value(); }},
    {"C23",
     [](const CaptureCall& call) {
       const auto frames = forward_frames(call);
       return static_cast<Integer>(frames.size()) != call.samples ||
              distinct(frames, [](const auto& frame) { return frame.first; }) != frames.size();
     }},
    {"OR1",
     [](const CaptureCall& call) { return unbalanced(whole_entries(call), extent(call).first); }},
    {"OR2",
     [](const CaptureCall& call) {
       return any(order_passes(whole_entries(call)), ends_before_it_begins);
     }},
    {"C24", different_modules_in_a_group},
    {"C25", [](const CaptureCall& call) { return call.tensors.leading.has_value(); }},
    {"W11", [](const CaptureCall& call) { return call.warm_up_iterations < 1; }},
    {"L02",
     [](const CaptureCall& call) {
       const auto branch = [](const auto& slot) {
         return std::tuple(slot[1], slot[3], slot[4], slot[2]);
       };
       return distinct(*call.slots, branch) != call.slots->size();
     }},
    {"K09a", branch_twice_in_a_run},
};

}  // namespace

std::set<std::string> liveness_violations(const Plan& plan) {
  const std::vector<std::string> decisions = liveness_decisions(plan);
  return {decisions.begin(), decisions.end()};
}

std::string decide(const Plan& plan) {
  const std::string rule = first_broken(kPlanRules, plan);
  if (!rule.empty()) return rule;
  const std::vector<std::string> decisions = liveness_decisions(plan);
  return decisions.empty() ? "" : decisions.front();
}

std::string decide(const CaptureCall& call) {
  const std::string rule = first_broken(kEveryCall, call);
  return rule.empty() && call.slots ? first_broken(kSlotCall, call) : rule;
}

}  // namespace slotgraph::testing

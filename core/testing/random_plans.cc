#include "core/testing/random_plans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/order/branch_order.h"
#include "core/order/microbatch_counts.h"
#include "core/plan/planner.h"

namespace slotgraph::testing {

Plan random_plan(Random& random) {
  PlanRequest request;
  PipelineShape& shape = request.shape;
  shape.pipeline_size = random.between(1, 4);
  shape.rank = random.below(shape.pipeline_size);
  shape.virtual_stages = shape.pipeline_size == 1 ? 0 : random.below(4);
  // Without virtual stages the group size says nothing.
  shape.microbatch_group_size = shape.pipeline_size + random.below(3);
  const int most_layers = random.between(1, 2);
  for (int chunk = 0; chunk < shape.chunks(); ++chunk)
    request.layers_per_chunk.push_back(random.chance(40) ? most_layers
                                                         : random.between(0, most_layers));
  const int variants = random.between(1, 3);
  for (int variant = 0; variant < variants; ++variant)
    request.cp_sizes.push_back(1 << (variants - 1 - variant));
  const int groups = random.between(1, 3);
  const int limit =
      shape.virtual_stages == 0 ? random.between(1, 6) : groups * shape.microbatch_group_size;
  const auto counts = random.chance(50) ? aligned_counts(shape, limit)
                                        : legal_counts(shape, limit + random.below(3));
  for (const int count : counts)
    if (count == counts.back() || random.chance(60)) request.counts.push_back(count);
  const int ring = shortest_ring(shape, request.counts);
  request.ring_length = ring + (random.chance(30) ? random.between(1, 2) : 0);
  return make_plan(request);
}

namespace {

std::vector<std::int64_t> members(const Slot& slot) {
  return {slot.colour, slot.physical_slot, slot.io_branch_id,   slot.model_chunk,
          slot.layer,  slot.module,        slot.gradient_colour};
}

std::vector<int> repeated(const std::vector<int>& values, int times) {
  std::vector<int> result;
  for (int i = 0; i < times; ++i) result.insert(result.end(), values.begin(), values.end());
  return result;
}

// A delayed weight gradient of one of the order's chunks.
void insert_delayed(Random& random, OrderEntries& order) {
  double chunks = 1;
  for (const double entry : order) chunks = std::max(chunks, std::floor(std::abs(entry)));
  const std::size_t place = random.below(static_cast<int>(order.size()) + 1);
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(place),
               -random.between(1, static_cast<int>(std::min(chunks, 9.0))) - 0.5);
}

// What holds without slots only.
void drop_slots(Random& random, CaptureCall& call) {
  call.slots.reset();
  const std::vector<int>& layers = call.layers;
  if (std::all_of(layers.begin(), layers.end(), [](int n) { return n == 1; }))
    for (int i = random.below(3); i > 0; --i) insert_delayed(random, *call.order);
  if (random.chance(20)) {
    call.order.reset();
    call.samples = static_cast<int>(call.callables.size());
  }
  if (random.chance(20))
    for (auto& module : call.callables) module.training = false;
  call.native_allocator = random.chance(50);
  call.warm_up_iterations = random.below(2);
}

}  // namespace

CaptureCall random_call(Random& random) {
  const Plan plan = random_plan(random);
  const Order order = branch_order(
      plan.base_order, plan.chunks(), plan.variants(), random.below(plan.variants()),
      random.chance(60) ? BranchArrangement::kLockstep : BranchArrangement::kVariantMajor);
  CaptureCall call;
  call.order = OrderEntries(order.begin(), order.end());
  call.layers = repeated(plan.layers_per_chunk, plan.variants());
  for (int module = 0; module < plan.variants() * plan.layers(); ++module)
    call.callables.push_back({.object = random.chance(80) ? module : random.below(module + 1)});
  call.samples = static_cast<int>(plan.slots.size());
  call.slots.emplace();
  for (const Slot& slot : plan.slots) call.slots->push_back(members(slot));
  call.warm_up_iterations = random.between(1, 3);
  if (random.chance(20)) drop_slots(random, call);
  return call;
}

// --- Violations of plans ---

namespace {

constexpr int Slot::*kFields[] = {&Slot::colour,         &Slot::physical_slot, &Slot::io_branch_id,
                                  &Slot::model_chunk,    &Slot::layer,         &Slot::module,
                                  &Slot::gradient_colour};

template <typename Values>
void erase_any(Random& random, Values& values) {
  if (!values.empty()) values.erase(values.begin() + random.below(static_cast<int>(values.size())));
}

template <typename Values>
void repeat_any(Random& random, Values& values) {
  if (values.empty()) return;
  const auto value = random.pick(values);
  values.insert(values.begin() + random.below(static_cast<int>(values.size()) + 1), value);
}

template <typename Values>
void swap_any(Random& random, Values& values) {
  if (!values.empty()) std::swap(*random.element(values), *random.element(values));
}

template <typename Values>
void resize_any(Random& random, Values& values) {
  random.chance(50) ? erase_any(random, values) : repeat_any(random, values);
}

// Sets one field of a frame in all variants.
void set_frame(Plan& plan, const Slot& frame, int Slot::*field, int value) {
  for (Slot& slot : plan.slots) {
    if (slot.physical_slot == frame.physical_slot && slot.model_chunk == frame.model_chunk &&
        slot.layer == frame.layer)
      slot.*field = value;
  }
}

// A value that PL01 lets pass.
int any_id(Random& random, const Plan& plan) {
  return random.below(std::max<int>(1, static_cast<int>(plan.slots.size())));
}

void set_any_field(Random& random, Plan& plan, int Slot::*field) {
  if (Slot* slot = random.element(plan.slots)) slot->*field = any_id(random, plan);
}

void share_arena(Random& random, Plan& plan) {
  if (plan.slots.empty()) return;
  const Slot one = random.pick(plan.slots), other = random.pick(plan.slots);
  set_frame(plan, one, &Slot::colour, other.colour);
}

void share_gradient_arena(Random& random, Plan& plan) {
  auto* colours = random.element(plan.gradient_colours);
  int* colour = colours == nullptr ? nullptr : random.element(*colours);
  if (colour == nullptr) return;
  *colour = random.below(2);
  const int chunk = static_cast<int>(colours - plan.gradient_colours.data());
  const int physical_slot = static_cast<int>(colour - colours->data());
  for (Slot& slot : plan.slots) {
    if (slot.model_chunk == chunk && slot.physical_slot == physical_slot)
      slot.gradient_colour = *colour;
  }
}

// One more or fewer microbatches than the ring has slots, or all forwards first.
void other_base_order(Random& random, Plan& plan) {
  const int microbatches = std::max(1, plan.ring_length + random.between(-1, 1));
  plan.base_order.clear();
  for (const int sign : {1, -1})
    for (int chunk = 1; chunk <= plan.chunks(); ++chunk)
      plan.base_order.insert(plan.base_order.end(), microbatches, sign * chunk);
}

void more_microbatches(Random& random, Plan& plan) {
  if (plan.covered_counts.empty()) return;
  const bool aligned = plan.shape.virtual_stages != 0 && random.chance(70);
  const int step = aligned ? std::max(1, plan.shape.microbatch_group_size) : 1;
  plan.covered_counts.push_back(plan.covered_counts.back() + step * random.between(1, 3));
}

int* any_shape_field(Random& random, PipelineShape& shape) {
  int* const fields[] = {&shape.pipeline_size, &shape.rank, &shape.virtual_stages,
                         &shape.microbatch_group_size};
  return random.pick(fields);
}

// Any number of the plan but those of slots; null if there is none.
int* any_number(Random& random, Plan& plan) {
  switch (random.below(7)) {
    case 0:
      return any_shape_field(random, plan.shape);
    case 1:
      return random.element(plan.layers_per_chunk);
    case 2:
      return random.element(plan.cp_sizes);
    case 3:
      return &plan.ring_length;
    case 4:
      return random.element(plan.covered_counts);
    case 5:
      return random.element(plan.base_order);
    default:
      auto* colours = random.element(plan.gradient_colours);
      return colours == nullptr ? nullptr : random.element(*colours);
  }
}

void change_any_number(Random& random, Plan& plan) {
  if (int* number = any_number(random, plan)) *number += random.between(-3, 3);
}

void change_any_field(Random& random, Plan& plan) {
  Slot* slot = random.element(plan.slots);
  if (slot == nullptr) return;
  int& field = slot->*random.pick(kFields);
  const int limits[] = {std::numeric_limits<int>::min(), std::numeric_limits<int>::max()};
  field = random.chance(10) ? random.pick(limits) : any_id(random, plan) + random.between(-1, 1);
}

void change_any_length(Random& random, Plan& plan) {
  switch (random.below(6)) {
    case 0:
      return resize_any(random, plan.layers_per_chunk);
    case 1:
      return resize_any(random, plan.cp_sizes);
    case 2:
      return resize_any(random, plan.covered_counts);
    case 3:
      return resize_any(random, plan.base_order);
    case 4:
      return resize_any(random, plan.slots);
    default:
      if (auto* colours = random.element(plan.gradient_colours)) resize_any(random, *colours);
  }
}

constexpr Violation<Plan> kPlanViolations[] = {
    {"PL00", [](Random& random, Plan& plan) { resize_any(random, plan.slots); }},
    {"PL00", [](Random& random, Plan& plan) { resize_any(random, plan.gradient_colours); }},
    {"PL00", [](Random& random, Plan& plan) { repeat_any(random, plan.covered_counts); }},
    {"PL00", [](Random&, Plan& plan) { plan.ring_length = 0; }},
    {"OP1",
     [](Random& random, Plan& plan) {
       plan.shape.rank = random.chance(50) ? -1 : plan.shape.pipeline_size;
     }},
    {"OP1",
     [](Random& random, Plan& plan) { plan.shape.microbatch_group_size = random.between(-1, 0); }},
    {"OP1",
     [](Random& random, Plan& plan) {
       plan.covered_counts.insert(plan.covered_counts.begin(), random.between(-1, 0));
     }},
    {"OP2", more_microbatches},
    {"OP2",
     [](Random&, Plan& plan) { plan.covered_counts.insert(plan.covered_counts.begin(), 1); }},
    {"PL01",
     [](Random& random, Plan& plan) {
       if (Slot* slot = random.element(plan.slots))
         slot->*random.pick(kFields) = random.chance(50) ? -1 : static_cast<int>(plan.slots.size());
     }},
    {"PL09",
     [](Random& random, Plan& plan) {
       if (Slot* slot = random.element(plan.slots))
         slot->model_chunk = random.below(std::max(1, plan.chunks()));
     }},
    {"PL13", [](Random& random, Plan& plan) { swap_any(random, plan.slots); }},
    {"PL13", [](Random& random, Plan& plan) { set_any_field(random, plan, &Slot::physical_slot); }},
    {"PL13", [](Random& random, Plan& plan) { set_any_field(random, plan, &Slot::layer); }},
    {"PL08", [](Random& random, Plan& plan) { set_any_field(random, plan, &Slot::module); }},
    {"PL02",
     [](Random& random, Plan& plan) {
       if (!plan.slots.empty())
         set_frame(plan, random.pick(plan.slots), &Slot::io_branch_id, any_id(random, plan));
     }},
    {"PL02", [](Random& random, Plan& plan) { set_any_field(random, plan, &Slot::io_branch_id); }},
    {"PL03", [](Random& random, Plan& plan) { set_any_field(random, plan, &Slot::colour); }},
    {"PL03",
     [](Random& random, Plan& plan) { set_any_field(random, plan, &Slot::gradient_colour); }},
    {"PL06",
     [](Random& random, Plan& plan) {
       if (!plan.slots.empty())
         set_frame(plan, random.pick(plan.slots), &Slot::gradient_colour, any_id(random, plan));
     }},
    {"PL00", [](Random& random, Plan& plan) { resize_any(random, plan.base_order); }},
    {"OR1",
     [](Random& random, Plan& plan) {
       if (int* entry = random.element(plan.base_order))
         *entry = random.between(-plan.chunks() - 1, plan.chunks() + 1);
     }},
    {"OR2", [](Random& random, Plan& plan) { swap_any(random, plan.base_order); }},
    {"PL14", more_microbatches},
    {"PL00", other_base_order},
    {"PL04", share_arena},
    {"PL05", share_gradient_arena},
    {"", change_any_number},
    {"", change_any_field},
    {"", change_any_length},
};

// --- Violations of calls ---

double* any_entry(Random& random, CaptureCall& call) {
  return call.order ? random.element(*call.order) : nullptr;
}

std::vector<std::int64_t>* any_slot(Random& random, CaptureCall& call) {
  return call.slots ? random.element(*call.slots) : nullptr;
}

void set_no_entry(Random& random, CaptureCall& call) {
  constexpr double kNone[] = {0,
                              0.5,
                              2.5,
                              -0.5,
                              -1.25,
                              -2.75,
                              std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity()};
  if (double* entry = any_entry(random, call)) *entry = random.pick(kNone);
}

// An entry becomes another one of its direction.
void unbalance(Random& random, CaptureCall& call) {
  double* entry = any_entry(random, call);
  if (entry == nullptr) return;
  const double other = std::abs(random.pick(*call.order));
  *entry = *entry > 0 ? other : -other;
}

void wrong_layers(Random& random, CaptureCall& call) {
  int* layers = random.element(call.layers);
  if (layers == nullptr || random.chance(50)) return resize_any(random, call.layers);
  *layers = -1;
}

void set_member(Random& random, CaptureCall& call, std::size_t member) {
  auto* slot = any_slot(random, call);
  auto* other = any_slot(random, call);
  if (slot != nullptr && slot->size() > member && other->size() > member)
    (*slot)[member] = (*other)[member];
}

// Two branches of a frame become one; the layers of their frames differ.
void repeat_branch(Random& random, CaptureCall& call) {
  const auto* other = any_slot(random, call);
  if (other == nullptr || other->size() != 7) return;
  const auto wanted = *other;
  for (auto& slot : *call.slots) {
    if (slot.size() != 7 || slot == wanted || slot[1] != wanted[1] || slot[3] != wanted[3] ||
        slot[4] != wanted[4])
      continue;
    slot[2] = wanted[2];
    slot[4] = 99;
    return;
  }
}

// Slots say the same branch, and maybe the same place and chunk, but different layers.
void repeat_all_branches(Random& random, CaptureCall& call) {
  if (!call.slots) return;
  const bool places = random.chance(50), chunks = random.chance(50);
  std::int64_t layer = 0;
  for (auto& slot : *call.slots) {
    if (slot.size() != 7) continue;
    if (places) slot[1] = random.below(2);
    slot[2] = 0;
    if (chunks) slot[3] = 0;
    slot[4] = layer++;
  }
}

void change_any_flag(Random& random, CaptureCall& call) {
  bool* const flags[] = {&call.autocast_caches_weights, &call.native_allocator};
  bool* flag = random.pick(flags);
  if (auto* module = random.chance(30) ? random.element(call.callables) : nullptr)
    flag = &module->training;
  *flag = !*flag;
}

void change_any_number(Random& random, CaptureCall& call) {
  int* number = nullptr;
  auto* slot = any_slot(random, call);
  switch (random.below(5)) {
    case 0:
      number = random.element(call.layers);
      break;
    case 1:
      if (auto* module = random.element(call.callables)) number = &module->object;
      break;
    case 2:
      number = &call.samples;
      break;
    case 3:
      number = &call.warm_up_iterations;
      break;
    default:
      if (std::int64_t* member = slot == nullptr ? nullptr : random.element(*slot))
        *member += random.between(-3, 3);
  }
  if (number != nullptr) *number += random.between(-3, 3);
}

void change_any_entry(Random& random, CaptureCall& call) {
  if (double* entry = any_entry(random, call)) *entry += random.between(-6, 6) / 2.0;
}

void change_any_length(Random& random, CaptureCall& call) {
  if (call.order && random.chance(50)) return resize_any(random, *call.order);
  if (call.slots && random.chance(50)) return resize_any(random, *call.slots);
  resize_any(random, call.callables);
}

constexpr Violation<CaptureCall> kCallViolations[] = {
    {"OR1", set_no_entry},
    {"C01", [](Random&, CaptureCall& call) { call.autocast_caches_weights = true; }},
    {"C02",
     [](Random& random, CaptureCall& call) {
       if (auto* module = random.element(call.callables)) module->training = !module->training;
     }},
    {"C03",
     [](Random& random, CaptureCall& call) {
       if (call.order) resize_any(random, *call.order);
     }},
    {"C03",
     [](Random& random, CaptureCall& call) {
       if (call.order && random.chance(20)) return call.order->clear();
       if (double* entry = any_entry(random, call)) *entry += *entry > 0 ? 1 : -1;
     }},
    {"C04",
     [](Random& random, CaptureCall& call) {
       if (call.order) insert_delayed(random, *call.order);
     }},
    {"C05", wrong_layers},
    {"C06", [](Random& random, CaptureCall& call) { resize_any(random, call.callables); }},
    {"C06", [](Random& random, CaptureCall& call) { call.samples += random.between(-2, 2); }},
    {"C07", [](Random&, CaptureCall& call) { call.native_allocator = false; }},
    {"C12",
     [](Random&, CaptureCall& call) {
       call.order.reset();
       call.samples = static_cast<int>(call.callables.size());
     }},
    {"C11",
     [](Random&, CaptureCall& call) {
       for (auto& module : call.callables) module.training = false;
     }},
    {"OP5",
     [](Random& random, CaptureCall& call) {
       if (call.order) insert_delayed(random, *call.order);
     }},
    {"C15",
     [](Random& random, CaptureCall& call) {
       if (call.slots) resize_any(random, *call.slots);
     }},
    {"C16",
     [](Random& random, CaptureCall& call) {
       if (auto* slot = any_slot(random, call)) resize_any(random, *slot);
     }},
    {"C18", [](Random&, CaptureCall& call) { call.tensors.buffer_requires_grad = "a tensor"; }},
    {"C19", [](Random&, CaptureCall& call) { call.tensors.positional = "a tensor"; }},
    {"C20", [](Random&, CaptureCall& call) { call.tensors.named = "a tensor"; }},
    {"C21", [](Random&, CaptureCall& call) { call.tensors.state_alias = "a tensor"; }},
    {"C23", unbalance},
    {"OR1", unbalance},
    {"OR2",
     [](Random& random, CaptureCall& call) {
       if (call.order) swap_any(random, *call.order);
     }},
    {"C24", [](Random& random, CaptureCall& call) { set_member(random, call, 5); }},
    {"C25", [](Random&, CaptureCall& call) { call.tensors.leading = "a sample"; }},
    {"W11", [](Random& random, CaptureCall& call) { call.warm_up_iterations = -random.below(2); }},
    {"L02", [](Random& random, CaptureCall& call) { set_member(random, call, 2); }},
    {"K09a", repeat_branch},
    {"K09a", repeat_all_branches},
    {"", change_any_flag},
    {"", change_any_number},
    {"", change_any_entry},
    {"", change_any_length},
    {"", [](Random& random, CaptureCall& call) { set_member(random, call, random.below(7)); }},
};

}  // namespace

std::span<const Violation<Plan>> plan_violations() { return kPlanViolations; }
std::span<const Violation<CaptureCall>> call_violations() { return kCallViolations; }

}  // namespace slotgraph::testing

#include "core/plan/capture_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "core/error.h"

namespace slotgraph {
namespace {

[[noreturn]] void refuse(const char* rule, std::string where, std::string found,
                         std::string expected, std::string advice = "correct the call") {
  throw Error(Error::kContract,
              {rule, std::move(where), std::move(found), std::move(expected), std::move(advice)});
}

enum Field { kBranch = 2, kSlot = 1, kChunk = 3, kLayer = 4, kWarmUp = 5 };

// Checks rule after rule; what later rules need is filled in by earlier ones.
class Checker {
 public:
  explicit Checker(const CaptureCall& call) : call_(call), has_slots_(call.slots.has_value()) {}

  void run() {
    check_entries();
    check_modes();
    if (call_.order) check_order_length();
    if (call_.order) check_layers();
    check_counts();
    check_slot_mode();
    if (!has_slots_) return;
    check_slots();
    check_frames();
    check_order(order_, chunks_);
    check_warm_up();
    check_branches();
    check_lockstep();
  }

 private:
  void check_entries() {
    if (!call_.order) return;
    const OrderEntries& entries = *call_.order;
    for (const double entry : entries) {
      if (!is_event(entry)) continue;
      order_.push_back(static_cast<int>(entry));
      chunks_ = std::max(chunks_, std::abs(order_.back()));
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (is_event(entries[i])) continue;
      delayed_ = is_delayed_weight_gradient(entries[i]) && entries[i] >= -chunks_ - 0.5;
      if (delayed_) continue;
      refuse("OR1", fmt::format("order, entry {}", i), fmt::format("{}", entries[i]),
             fmt::format("+c, -c, or -c - 0.5 with a chunk c from 1 to {}", chunks_));
    }
  }

  void check_modes() {
    if (call_.autocast_caches_weights)
      refuse("C01", "autocast", "weight caching on", "off", "switch the cache off for the call");
    for (std::size_t i = 0; i < call_.callables.size(); ++i) {
      training_ = call_.callables.front().training;
      if (call_.callables[i].training == training_) continue;
      refuse("C02", fmt::format("module {}", i), training_ ? "evaluation mode" : "training mode",
             "the mode of module 0");
    }
  }

  void check_order_length() {
    const int events = static_cast<int>(order_.size());
    microbatches_ = chunks_ == 0 ? 0 : events / chunks_ / 2;
    if (events > 0 && events == std::int64_t{chunks_} * microbatches_ * 2) return;
    refuse("C03", "order", fmt::format("{} events for {} chunks", events, chunks_),
           "an even number of events for each chunk, the same for all");
  }

  void check_layers() {
    layers_ = call_.layers;
    if (delayed_ && std::any_of(layers_.begin(), layers_.end(), [](int n) { return n != 1; })) {
      refuse("C04", "layers", fmt::format("{}", layers_),
             "one layer a chunk, as delayed weight gradients need");
    }
    const bool counts = std::all_of(layers_.begin(), layers_.end(), [](int n) { return n >= 0; });
    if (static_cast<int>(layers_.size()) != chunks_ || !counts)
      refuse("C05", "layers", fmt::format("{}", layers_), fmt::format("{} counts", chunks_));
    prefix_.assign(1, 0);
    for (const int layers : layers_) {
      const std::int64_t sum = std::int64_t{prefix_.back()} + layers;
      // The sum of a call whose counts fit is a size of its lists; what is larger stays too large.
      prefix_.push_back(static_cast<int>(std::min<std::int64_t>(sum, kMostEvents)));
    }
  }

  void check_counts() {
    const int callables = static_cast<int>(call_.callables.size());
    const auto require = [](const char* what, std::int64_t found, std::int64_t expected) {
      if (found != expected) refuse("C06", what, fmt::to_string(found), fmt::to_string(expected));
    };
    if (call_.order) require("callables", callables, prefix_.back());
    require("samples", call_.samples,
            call_.order ? std::int64_t{prefix_.back()} * microbatches_ : callables);
  }

  void check_slot_mode() {
    if (has_slots_ && !call_.native_allocator) {
      refuse("C07", "allocator", "another backend", "the native caching allocator",
             "unset the backend option of the allocator");
    }
    if (!has_slots_) return;
    if (!training_) refuse("C11", "slots", "modules in evaluation mode", "training mode");
    if (!call_.order) refuse("C12", "slots", "no order", "an order");
    if (delayed_) {
      refuse("OP5", "order", "a delayed weight gradient", "forwards and backwards only",
             "capture without slots, or switch the delay off");
    }
  }

  void check_slots() {
    const auto& slots = *call_.slots;
    if (static_cast<int>(slots.size()) != call_.samples)
      refuse("C15", "slots", fmt::to_string(slots.size()), fmt::to_string(call_.samples));
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].size() == 7) continue;
      refuse("C16", fmt::format("slot {}", i), fmt::format("{} members", slots[i].size()), "seven");
    }
    check_tensors();
  }

  void check_tensors() {
    const CaptureCall::Tensors& tensors = call_.tensors;
    const auto check = [](const std::optional<std::string>& where, const char* rule,
                          const char* found, const char* expected, const char* advice) {
      if (where) refuse(rule, *where, found, expected, advice);
    };
    check(tensors.buffer_requires_grad, "C18", "a buffer that requires grad", "none",
          "make it a parameter");
    check(tensors.positional, "C19", "an input that can have no static place",
          "a plain strided tensor of the current device", "move it there, make it dense");
    check(tensors.named, "C20", "an input that can have no static place",
          "a plain strided tensor of the current device", "move it there, make it dense");
    check(tensors.state_alias, "C21", "an input in the memory of a parameter or buffer",
          "memory of its own", "clone the input");
  }

  // Frame of a chunk's layer for its m-th microbatch.
  int frame(int chunk, int microbatch, int layer) const {
    return prefix_[chunk] * microbatches_ + microbatch * layers_[chunk] + layer;
  }
  const std::vector<std::int64_t>& slot(int frame) const { return (*call_.slots)[frame]; }

  void check_frames() {
    std::set<int> frames;
    int count = 0;
    for (const OrderEvent& event : events(order_)) {
      if (!event.forward) continue;
      for (int layer = 0; layer < layers_[event.chunk]; ++layer, ++count)
        frames.insert(frame(event.chunk, event.microbatch, layer));
    }
    if (count == call_.samples && static_cast<int>(frames.size()) == count) return;
    refuse("C23", "order", fmt::format("{} frames, {} different", count, frames.size()),
           fmt::format("{}, one for each sample", call_.samples));
  }

  template <typename Visit>
  void for_each_frame(Visit visit) const {
    for (int chunk = 0; chunk < chunks_; ++chunk)
      for (int m = 0; m < microbatches_; ++m)
        for (int layer = 0; layer < layers_[chunk]; ++layer)
          visit(frame(chunk, m, layer), prefix_[chunk] + layer);
  }

  void check_warm_up() {
    std::map<std::int64_t, int> object_of_group;
    for_each_frame([&](int frame, int module) {
      const int object = call_.callables[module].object;
      const auto [entry, is_new] = object_of_group.emplace(slot(frame)[kWarmUp], object);
      if (entry->second == object) return;
      refuse("C24", fmt::format("slot {}, field 5", frame),
             fmt::format("group {} with another module", slot(frame)[kWarmUp]),
             "one module object for a group");
    });
    if (call_.tensors.leading) {
      refuse("C25", *call_.tensors.leading, "no first positional input", "a leading tensor",
             "pass one");
    }
    if (call_.warm_up_iterations < 1) {
      refuse("W11", "warm-up iterations", fmt::to_string(call_.warm_up_iterations), "at least 1");
    }
  }

  void check_branches() {
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> branches;
    for_each_frame([&](int frame, int) {
      const auto& s = slot(frame);
      if (branches.emplace(s[kSlot], s[kChunk], s[kLayer], s[kBranch]).second) return;
      refuse("L02", fmt::format("slot {}, field 2", frame), fmt::format("branch {}", s[kBranch]),
             "a branch that its frame has once");
    });
  }

  // Runs of events with equal keys (direction, chunk of the plan, microbatch, slot, layers).
  void check_lockstep() {
    using Key = std::tuple<bool, std::int64_t, int, std::int64_t, int>;
    Key last;
    bool in_run = false;
    std::set<std::int64_t> branches;
    for (const OrderEvent& event : events(order_)) {
      const int layers = layers_[event.chunk];
      if (layers == 0) {
        in_run = false;
        continue;
      }
      const auto& s = slot(frame(event.chunk, event.microbatch, 0));
      const Key key{event.forward, s[kChunk], event.microbatch, s[kSlot], layers};
      if (!in_run || last != key) branches.clear();
      in_run = true;
      last = key;
      if (branches.insert(s[kBranch]).second) continue;
      refuse("K09a",
             fmt::format("{} of chunk {}, microbatch {}", event.forward ? "forward" : "backward",
                         event.chunk + 1, event.microbatch),
             fmt::format("branch {} twice in a lockstep run", s[kBranch]), "different branches");
    }
  }

  const CaptureCall& call_;
  const bool has_slots_;
  bool delayed_ = false;
  bool training_ = true;
  Order order_;  // events
  int chunks_ = 0;
  int microbatches_ = 0;
  std::vector<int> layers_;  // of each chunk
  std::vector<int> prefix_;  // of layers_
};

}  // namespace

void check(const CaptureCall& call) { Checker(call).run(); }

}  // namespace slotgraph

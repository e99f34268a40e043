#include "fuzz/execute/execute.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>

#include <map>
#include <set>

#include "core/device/device.h"
#include "core/error.h"
#include "core/graph/graph_callables.h"
#include "core/models/blocks.h"
#include "fuzz/execute/address_book.h"
#include "fuzz/execute/driver.h"
#include "fuzz/execute/layout_digest.h"
#include "fuzz/execute/model.h"
#include "fuzz/execute/observer.h"
#include "fuzz/execute/shadow.h"

namespace slotgraph::fuzz {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

// What the process holds on the device once nothing is queued and nothing is cached.
struct Ledger {
  std::size_t allocated = 0;
  std::size_t free_bytes = 0;

  static Ledger read() {
    device::synchronise();
    device::release_workspaces();
    caching::emptyCache();
    const auto stats = caching::getDeviceStats(c10::cuda::current_device());
    return {static_cast<std::size_t>(stats.allocated_bytes[0].current),
            device::memory_info().free_bytes};
  }
};

void check_blocks(const Case& value) {
  for (const LayerCase& layer : value.layers) find_block(layer.block);
}

void report(Record& record, const char* property, const std::string& name, const std::string& where,
            const std::string& what) {
  constexpr std::size_t most = 16;
  if (record.findings.size() < most) record.findings.push_back({property, name, where, what});
}

bool same_but_schedule(Case a, const Case& b) {
  a.schedule = b.schedule;
  return to_json(a) == to_json(b);
}

}  // namespace

// A case's model and the callables that were captured over it.
class CaseRun {
 public:
  CaseRun(const Case& value, const ExecuteOptions& options)
      : options_(options), before_(configured(value)), case_(value) {}

  bool serves(const Case& value) const { return same_but_schedule(case_, value); }

  void run(const Case& value, Record& record) {
    case_.schedule = value.schedule;
    if (!parts_) parts_.emplace(case_, options_.keep_captures);
    const std::size_t before = held_bytes();
    compare(record);
    // The first run leaves captures and workspaces.
    const std::size_t after = runs_++ > 0 ? held_bytes() : before;
    if (after != before) {
      report(record, "memory", "all", "after the schedule",
             fmt::format("{} bytes asked for, expected {} as before", after, before));
    }
  }

  // Gives everything back.
  void end(Record& record) {
    parts_.reset();
    const Ledger after = Ledger::read();
    if (after.allocated != before_.allocated || after.free_bytes != before_.free_bytes) {
      report(record, "memory", "all", "after teardown",
             fmt::format("{} bytes allocated and {} free, expected {} and {} as before",
                         after.allocated, after.free_bytes, before_.allocated, before_.free_bytes));
    }
  }

 private:
  // What was asked for, but values that are remembered.
  std::size_t held_bytes() const {
    device::synchronise();
    const auto stats = caching::getDeviceStats(c10::cuda::current_device());
    return static_cast<std::size_t>(stats.requested_bytes[0].current) -
           parts_->model.remembered_bytes();
  }

  void compare(Record& record) {
    const auto truth = make_truth(options_.compare_on_device);
    Driver(parts_->model, set(Mode::kEager).callables(), *truth, {.pass_zeros = true}).run();
    record.value_digest = truth->digest();
    run_graphs(*truth, Mode::kNative, to_string(Mode::kNative), record);
    for (const Mode mode : case_.modes) {
      const std::string name = to_string(mode);
      const bool copies = traits(mode).copies;
      if (copies && parts_->model.aliases_leading_input()) {
        expect_refused(mode, name, "L01", record);
      } else if (copies && parts_->model.hides_saves()) {
        expect_refused(mode, name, "K09", record);
      } else {
        run_graphs(*truth, mode, name, record);
      }
    }
  }

  struct Parts {
    Parts(const Case& value, bool remember) : model(value, remember), samples(model.samples()) {}
    Model model;
    std::vector<Inputs> samples;
    std::map<Mode, std::unique_ptr<CallableSet>> sets;
    std::set<Mode> refused;  // as expected
  };

  // A set that is kept, or lives as long as this.
  class Set {
   public:
    Set(CallableSet* kept, std::unique_ptr<CallableSet> own)
        : own_(std::move(own)), callables_(kept ? kept : own_.get()) {}
    CallableSet& callables() const { return *callables_; }

   private:
    std::unique_ptr<CallableSet> own_;
    CallableSet* callables_;
  };

  static Ledger configured(const Case& value) {
    device::configure(simulation_of(value));
    return Ledger::read();
  }

  std::unique_ptr<CallableSet> capture(Mode mode) {
    parts_->model.reset();
    return graph_callables(parts_->model.modules_of_variants(), parts_->samples,
                           case_.plan.base_order, case_.plan, {.mode = mode});
  }

  Set set(Mode mode) {
    if (!options_.keep_captures) return {nullptr, capture(mode)};
    auto& kept = parts_->sets[mode];
    if (!kept) kept = capture(mode);
    return {kept.get(), nullptr};
  }

  // What copying would lose must not be lost in silence.
  void expect_refused(Mode mode, const std::string& name, const std::string& rule, Record& record) {
    if (parts_->refused.contains(mode)) return;
    try {
      capture(mode);
    } catch (const Error& error) {
      if (error.rule() != rule) throw;
      parts_->refused.insert(mode);
      return;
    }
    report(record, "error", name, "capture", "the case was accepted, expected rule " + rule);
  }

  using Watchers = std::vector<std::shared_ptr<ReplayWatcher>>;

  // The oracles besides values.
  Watchers slot_watchers(CallableSet& callables) const {
    Watchers watchers{std::make_shared<AddressBook>(case_.plan)};
    if (case_.shadow)
      watchers.push_back(std::make_shared<Shadow>(callables, case_.plan, case_.poison));
    return watchers;
  }

  void run_graphs(const Truth& truth, Mode mode, const std::string& name, Record& record) {
    const auto comparer = truth.make_comparer(name);
    const bool captures = !parts_->sets.contains(mode);
    const Set graphs = set(mode);
    CallableSet& callables = graphs.callables();
    const std::size_t reserved = callables.memory().reserved_bytes;
    if (mode == Mode::kNative) record.counters.pool_bytes_native = reserved;
    if (mode == Mode::kPlacement) {
      record.counters.pool_bytes_slot = reserved;
      record.layout_digest = layout_digest(callables, case_.plan);
    }
    if (captures) record.counters.frames_captured += case_.plan.slots.size();
    const auto watchers = is_slot_mode(mode) ? slot_watchers(callables) : Watchers();
    Driver driver(parts_->model, callables, *comparer, {.watchers = watchers});
    driver.run();
    record.counters.replays += driver.replays();
    record.counters.tensors_compared += comparer->tensors();
    record.counters.bytes_compared += comparer->bytes();
    for (Finding& finding : comparer->findings()) record.findings.push_back(std::move(finding));
    for (const auto& watcher : watchers) {
      for (Finding& finding : watcher->findings(name))
        record.findings.push_back(std::move(finding));
    }
  }

  ExecuteOptions options_;
  Ledger before_;
  Case case_;
  std::optional<Parts> parts_;
  int runs_ = 0;
};

Executor::Executor(const ExecuteOptions& options)
    : options_(options), stream_(c10::cuda::getStreamFromPool()) {}

Executor::~Executor() = default;

Record Executor::run(const Case& value) {
  check_blocks(value);
  Record record;
  record.case_seed = value.seed;
  record.case_digest = digest(value);
  record.plan = value.plan.name;
  record.schedule = value.schedule.source;
  record.wrapped = value.wraps();
  record.mixed = value.mixes();
  record.equal_tokens = value.equal_tokens();
  record.counters.microbatches =
      value.schedule.variants.size() * static_cast<std::uint64_t>(value.steps);
  const c10::cuda::CUDAStreamGuard stream(stream_);
  try {
    if (kept_ && !kept_->serves(value)) {
      kept_->end(record);
      kept_.reset();
    }
    if (!kept_) kept_ = std::make_unique<CaseRun>(value, options_);
    kept_->run(value, record);
    if (!options_.keep_captures) {
      kept_->end(record);
      kept_.reset();
    }
  } catch (const std::exception& error) {
    const std::string text = error.what();
    record.findings.push_back(
        {"error", "all", "exception", text.substr(0, text.find("Exception raised from"))});
    kept_.reset();
  }
  record.verdict = record.findings.empty() ? Verdict::kHolds : Verdict::kViolated;
  return record;
}

std::vector<Finding> Executor::end() {
  Record record;
  if (kept_) kept_->end(record);
  kept_.reset();
  return record.findings;
}

device::Simulation simulation_of(const Case& value) {
  using Addresses = device::Simulation::Addresses;
  return {.order_seed = value.order_seed,
          .addresses = value.addresses == "descending" ? Addresses::kDescending
                       : value.addresses == "seeded"   ? Addresses::kSeeded
                                                       : Addresses::kAscending,
          .poison = static_cast<std::uint8_t>(value.poison)};
}

Record execute(const Case& value) { return Executor({}).run(value); }

}  // namespace slotgraph::fuzz

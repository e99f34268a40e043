#include "fuzz/execute/execute.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>

#include "core/device/device.h"
#include "core/error.h"
#include "core/graph/callables.h"
#include "core/models/blocks.h"
#include "fuzz/execute/driver.h"
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
    caching::emptyCache();
    const auto stats = caching::getDeviceStats(c10::cuda::current_device());
    return {static_cast<std::size_t>(stats.allocated_bytes[0].current),
            device::memory_info().free_bytes};
  }
};

void check_blocks(const Case& value) {
  for (const LayerCase& layer : value.layers) find_block(layer.block);
}

class CaseRun {
 public:
  CaseRun(const Case& value, Record& record)
      : case_(value), record_(record), model_(value), samples_(model_.samples()) {}

  void run() {
    {
      const auto eager = callables(Mode::kEager);
      Driver(model_, *eager, truth_, {.pass_zeros = true}).run();
    }
    run_graphs(Mode::kNative, "native");
    for (const std::string& name : case_.modes) {
      const Mode mode = mode_from_name(name);
      const bool copies = mode != Mode::kPlacement;
      if (copies && model_.aliases_leading_input()) {
        expect_refused(mode, name, "L01");
      } else if (copies && model_.hides_saves()) {
        expect_refused(mode, name, "K09");
      } else {
        run_graphs(mode, name);
      }
    }
  }

 private:
  std::unique_ptr<CallableSet> callables(Mode mode) {
    model_.reset();
    return graph_callables(model_.modules_of_variants(), samples_, case_.plan.base_order,
                           case_.plan, {.mode = mode});
  }

  void report(const char* property, const std::string& name, const std::string& where,
              const std::string& what) {
    constexpr std::size_t most = 16;
    if (record_.findings.size() < most) record_.findings.push_back({property, name, where, what});
  }

  // What copying would lose must not be lost in silence.
  void expect_refused(Mode mode, const std::string& name, const std::string& rule) {
    try {
      callables(mode);
    } catch (const Error& error) {
      if (error.rule() == rule) return;
      throw;
    }
    report("error", name, "capture", "the case was accepted, expected rule " + rule);
  }

  void run_graphs(Mode mode, const std::string& name) {
    TruthComparer comparer(truth_, name);
    const auto set = callables(mode);
    AddressBook addresses;
    Shadow shadow(*set, case_.plan, case_.poison);
    const bool shared = is_slot_mode(mode);
    if (mode == Mode::kNative) record_.counters.pool_bytes_native = set->memory().reserved_bytes;
    if (mode == Mode::kPlacement) record_.counters.pool_bytes_slot = set->memory().reserved_bytes;
    record_.counters.frames_captured += case_.plan.slots.size();
    Driver driver(model_, *set, comparer,
                  {.addresses = shared ? &addresses : nullptr,
                   .shadow = shared && case_.shadow ? &shadow : nullptr});
    driver.run();
    record_.counters.replays += driver.replays();
    record_.counters.tensors_compared += comparer.tensors();
    record_.counters.bytes_compared += comparer.bytes();
    for (Finding& finding : comparer.findings()) record_.findings.push_back(std::move(finding));
    for (const std::string& fault : driver.address_faults())
      report("addresses", name, fault, "equal slots have other addresses");
    for (const std::string& fault : shadow.faults())
      report("shadow", name, fault, "bytes that another frame owns have changed");
  }

  const Case& case_;
  Record& record_;
  Model model_;
  std::vector<Inputs> samples_;
  TruthRecorder truth_;
};

}  // namespace

Mode mode_from_name(const std::string& name) {
  return name == "arena"        ? Mode::kArena
         : name == "checkpoint" ? Mode::kCheckpoint
         : name == "native"     ? Mode::kNative
                                : Mode::kPlacement;
}

device::Simulation simulation_of(const Case& value) {
  using Addresses = device::Simulation::Addresses;
  return {.order_seed = value.order_seed,
          .addresses = value.addresses == "descending" ? Addresses::kDescending
                       : value.addresses == "seeded"   ? Addresses::kSeeded
                                                       : Addresses::kAscending,
          .poison = static_cast<std::uint8_t>(value.poison)};
}

Record execute(const Case& value) {
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
  device::configure(simulation_of(value));
  const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
  const Ledger before = Ledger::read();
  try {
    CaseRun(value, record).run();
    const Ledger after = Ledger::read();
    if (after.allocated != before.allocated || after.free_bytes != before.free_bytes) {
      record.findings.push_back(
          {"memory", "all", "after teardown",
           fmt::format("{} bytes allocated and {} free, expected {} and {} as before",
                       after.allocated, after.free_bytes, before.allocated, before.free_bytes)});
    }
  } catch (const std::exception& error) {
    const std::string text = error.what();
    record.findings.push_back(
        {"error", "all", "exception", text.substr(0, text.find("Exception raised from"))});
  }
  record.verdict = record.findings.empty() ? Verdict::kHolds : Verdict::kViolated;
  return record;
}

}  // namespace slotgraph::fuzz

#include "probes/conformance/run.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/device/device.h"
#include "probes/conformance/environment.h"
#include "probes/conformance/state.h"
#include "probes/conformance/subject.h"

namespace slotgraph::conformance {
namespace {

device::Simulation simulation_of(const Program& program) {
  using Addresses = device::Simulation::Addresses;
  constexpr Addresses kAddresses[] = {Addresses::kAscending, Addresses::kDescending,
                                      Addresses::kSeeded};
  return {.order_seed = program.policy == Policy::kSeeded ? program.address_seed : 0,
          .addresses = kAddresses[static_cast<int>(program.policy)],
          .memory_bytes = program.capacity};
}

// The first line, without what a machine adds: how much memory it has, and who else uses it.
std::string message_of(const c10::Error& error) {
  std::string text = error.msg();
  text.erase(std::min(text.find('\n'), text.size()));
  const std::size_t from = text.find(" GPU "), to = text.find(" Of the allocated memory");
  if (from < to && to != std::string::npos) text.erase(from, to - from);
  for (const char* const advice : {" If reserved but unallocated", ", please report a bug"})
    text.erase(std::min(text.find(advice), text.size()));
  return text;
}

class Execution {
 public:
  explicit Execution(const Program& program)
      : program_(program),
        subject_((device::configure(simulation_of(program)), environment_), program.capacity,
                 line_) {
    line_.clear();
    reset_peaks();
    before_ = counters();
  }

  Outcome run() {
    for (const Operation& operation : program_.operations) step(operation);
    show_state();
    attempt({}, Order::kNone, [&] {
      line_ += "end";
      subject_.end();
    });
    const auto left = counters().at("reserved bytes all").front();
    outcome_.left_bytes = static_cast<std::size_t>(left);
    if (left != 0) outcome_.log += fmt::format("{} bytes have not come back\n", left);
    return std::move(outcome_);
  }

 private:
  void step(const Operation& operation) {
    if (operation.kind == Kind::kAllocate && subject_.unsettled())
      attempt({}, Order::kNone, [&] { subject_.settle(); });
    // Events are asked for when they are done, on every device.
    if (subject_.recorded()) device::synchronise();
    std::optional<Fault> fault = operation.fault;
    if (fault && fault->call == "cudaFree" && !subject_.may_fail_frees()) fault.reset();
    line_ += fmt::format("{} ", outcome_.operations++);
    ++outcome_.kinds[std::string(name_of(operation.kind))];
    const bool unordered = operation.kind == Kind::kRestore ||
                           operation.kind == Kind::kCheckpoint ||
                           (operation.kind == Kind::kEmptyCache && subject_.unsettled());
    attempt(fault, unordered ? Order::kNone : Order::kExact, [&] { subject_.perform(operation); });
  }

  template <typename Call>
  void attempt(const std::optional<Fault>& fault, Order order, const Call& call) {
    Watcher& watcher = environment_.watcher();
    watcher.start(fault);
    try {
      call();
      note_success();
    } catch (const c10::OutOfMemoryError& error) {
      line_ += ": out of memory: " + message_of(error);
      ++outcome_.situations["out of memory"];
    } catch (const c10::Error& error) {
      line_ += ": refused: " + message_of(error);
      ++outcome_.situations["refused"];
    }
    Watched watched = watcher.stop();
    note(watched);
    if (watched.faulted) {
      line_ += fmt::format(" ({} fails: {})", fault->call, fault->error);
      ++outcome_.situations[fmt::format("fault of {}", fault->call)];
    }
    outcome_.log += line_ + to_string(std::move(watched), order) + "\n";
    line_.clear();
  }

  void note_success() {
    if (line_.ends_with("skipped")) ++outcome_.situations["skipped"];
    if (line_.find(" freed ") != std::string::npos) ++outcome_.situations["restored"];
  }

  void note(const Watched& watched) {
    using enum c10::CachingDeviceAllocator::TraceEntry::Action;
    outcome_.events += watched.events.size();
    outcome_.calls += watched.call_count();
    const auto count = [&](const char* situation, bool there) {
      if (there) ++outcome_.situations[situation];
    };
    const bool allocated = watched.has(ALLOC), fresh = watched.has(SEGMENT_ALLOC);
    const bool requested = watched.has(FREE_REQUESTED), completed = watched.has(FREE_COMPLETED);
    count("fresh segment", fresh);
    count("reused", allocated && !fresh && !requested);
    count("in a private pool", allocated && watched.events.back().pool != 0);
    count("free waits", requested && !completed);
    count("free after waiting", completed && !requested);
    count("segments released", watched.has(SEGMENT_FREE));
    count("released to allocate", watched.has(SEGMENT_FREE) && fresh);
  }

  void show_state() {
    for (const SegmentInfo& segment : segments())
      outcome_.log += to_string(segment, environment_.stream_ordinal(segment.stream),
                                pool_ordinal(segment.owner_private_pool_id)) +
                      "\n";
    outcome_.log += difference(before_, counters());
  }

  const Program& program_;
  Environment& environment_ = Environment::instance();
  std::string line_;
  Subject subject_;
  Counters before_;
  Outcome outcome_;
};

}  // namespace

Outcome run(const Program& program) { return Execution(program).run(); }

}  // namespace slotgraph::conformance

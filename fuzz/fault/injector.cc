#include "fuzz/fault/injector.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "core/device/device.h"
#include "core/error.h"
#include "core/random.h"
#include "core/trace/calls.h"

namespace slotgraph::fuzz {
namespace {

constexpr int kFrames = 12;  // that tell one place of the code from another
constexpr int kOwn = 3;      // innermost frames, of this object

using Frames = std::vector<void*>;

Frames call_stack() {
  Frames frames(kFrames + kOwn);
  frames.resize(static_cast<std::size_t>(::backtrace(frames.data(), kFrames + kOwn)));
  frames.erase(frames.begin(), frames.begin() + std::min<std::ptrdiff_t>(kOwn, std::ssize(frames)));
  return frames;
}

// Return addresses as offsets in their files: the same in every process. (dladdr() would search
// libtorch's symbols each time.)
std::uint64_t digest_of(const Frames& frames) {
  std::uint64_t state = 0;
  for (void* const frame : frames) {
    dl_find_object file{};
    const bool known = ::_dl_find_object(frame, &file) == 0;
    const auto base = reinterpret_cast<std::uintptr_t>(known ? file.dlfo_map_start : nullptr);
    state ^= reinterpret_cast<std::uintptr_t>(frame) - base;
    state = split_mix64(state);
  }
  return state;
}

// A function's name, or file and offset of code without one.
std::string describe(void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0) return fmt::format("{}", address);
  if (!info.dli_sname) {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) -
                        reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    return fmt::format("{}+{:#x}", std::filesystem::path(info.dli_fname).filename().string(),
                       offset);
  }
  int status = 0;
  char* const text = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  const std::string name = status == 0 ? text : info.dli_sname;
  std::free(text);  // NOLINT: __cxa_demangle allocates so
  return name.substr(0, name.find('('));
}

const std::string& symbol_of(void* address) {
  static auto& known = *new std::map<void*, std::string>();
  const auto [it, fresh] = known.try_emplace(address);
  if (fresh) it->second = describe(address);
  return it->second;
}

std::vector<std::string> symbols_of(const Frames& frames) {
  std::vector<std::string> names;
  for (void* const frame : frames) names.push_back(symbol_of(frame));
  return names;
}

// The error that a call returns which fails for no reason of its own.
int error_of(const std::string& call) {
  constexpr int memory_allocation = 2, unknown = 999;
  const bool allocates = call == "cudaMalloc" || call == "cudaHostAlloc" ||
                         call == "cudaMallocHost" || call == "cudaMallocAsync";
  return allocates ? memory_allocation : unknown;
}

// These report the failure before, and do not fail themselves.
bool reports_errors(const std::string& call) {
  return call == "cudaGetLastError" || call == "cudaPeekAtLastError";
}

// Levenshtein's distance.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j - 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

[[noreturn]] void refuse(const std::string& what, const std::string& found,
                         std::vector<std::string> names) {
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return distance(found, a) < distance(found, b);
  });
  names.resize(std::min<std::size_t>(names.size(), 4));
  throw Error(Error::kInput, {"T01", what, "`" + found + "`",
                              fmt::format("one of {}, ...", fmt::join(names, ", ")),
                              "bazel run //:sweep -- --list shows all"});
}

std::vector<std::string> matching(const std::string& pattern, const std::string& what,
                                  const std::vector<std::string>& names) {
  std::vector<std::string> result;
  for (const std::string& name : names)
    if (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0) result.push_back(name);
  if (result.empty()) refuse(what, pattern, names);
  return result;
}

std::string exactly(const JsonReader& reader, const std::vector<std::string>& names) {
  const std::string name = reader.text();
  if (std::find(names.begin(), names.end(), name) == names.end())
    refuse(reader.path(), name, names);
  return name;
}

template <typename Names>
void append(std::vector<std::string>& all, const Names& names) {
  for (const std::string_view name : names) all.emplace_back(name);
}

}  // namespace

std::string to_string(const Point& point) { return point.name + "@" + point.phase; }

const FaultTraits& traits(Fault fault) { return kFaults[static_cast<std::size_t>(fault)]; }

std::string to_string(const Injection& injection) {
  const std::string second =
      injection.second > 0 ? fmt::format(", and point {} after it", injection.second) : "";
  return fmt::format("{}#{} {}{}", to_string(injection.point), injection.nth,
                     to_string(injection.fault), second);
}

const std::vector<std::string>& point_names() {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> all;
    append(all, trace::kCallNames);
    append(all, trace::kStepNames);
    return all;
  }());
  return names;
}

const std::vector<std::string>& phase_names() {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> all;
    append(all, trace::kPhaseNames);
    return all;
  }());
  return names;
}

std::vector<Point> match_points(const std::string& pattern) {
  const std::size_t at = pattern.find('@');
  const auto names = matching(pattern.substr(0, at), "name of a fault point", point_names());
  const auto phases = at == std::string::npos ? phase_names()
                                              : matching(pattern.substr(at + 1),
                                                         "phase of a fault point", phase_names());
  std::vector<Point> points;
  for (const std::string& name : names)
    for (const std::string& phase : phases) points.push_back({name, phase});
  return points;
}

nlohmann::json to_json(const Injection& injection) {
  return {{"point", injection.point.name},
          {"phase", injection.point.phase},
          {"nth", injection.nth},
          {"fault", to_string(injection.fault)},
          {"second", injection.second}};
}

Injection injection_from_json(const JsonReader& reader) {
  reader.allow_only({"point", "phase", "nth", "fault", "second"});
  Injection injection;
  injection.point.name = exactly(reader.field("point"), point_names());
  injection.point.phase = reader.field("phase").text();
  if (injection.point.phase != "*") (void)exactly(reader.field("phase"), phase_names());
  injection.nth = static_cast<std::uint64_t>(reader.field("nth").integer(1, 1'000'000'000));
  std::vector<std::string> faults;
  for (const FaultTraits& fault : kFaults) faults.emplace_back(fault.name);
  const std::string name = reader.field("fault").choice(faults);
  for (const FaultTraits& fault : kFaults)
    if (fault.name == name) injection.fault = fault.fault;
  injection.second = static_cast<std::uint64_t>(reader.field("second").integer(0, 1'000'000'000));
  return injection;
}

Injector& Injector::instance() {
  static Injector& the_injector = *new Injector();
  return the_injector;
}

Injector::Injector() {
  (void)call_stack();  // loads what backtrace() loads at its first call
  device::observe_calls(
      [](const char* name, void* injector) {
        return static_cast<Injector*>(injector)->on_call(name);
      },
      this);
  trace::set_step_listener(this);
}

void Injector::record() {
  reached_.clear();
  fired_ = 0;
  thread_ = std::this_thread::get_id();
  state_ = State::kRecording;
}

void Injector::arm(const Injection& injection,
                   std::function<void(const std::vector<std::string>&)> before) {
  injection_ = injection;
  before_ = std::move(before);
  counts_.clear();
  after_first_ = 0;
  fired_ = 0;
  failed_.clear();
  segments_ = device::resources().segments;
  thread_ = std::this_thread::get_id();
  state_ = State::kArmed;
}

int Injector::disarm() {
  state_ = State::kIdle;
  return fired_;
}

bool Injector::fires(std::string name) {
  if (state_ == State::kIdle || inside_ || std::this_thread::get_id() != thread_) return false;
  const trace::Phase phase = trace::phase();
  if (phase == trace::Phase::outside) return false;
  const Point point{std::move(name), std::string(phase_name(phase))};
  if (state_ == State::kRecording) {
    const Frames frames = call_stack();
    const std::uint64_t digest = digest_of(frames);
    reached_[point].push_back(digest);
    if (!stacks_.contains(digest)) stacks_[digest] = symbols_of(frames);
    return false;
  }
  const bool in_phase = injection_.point.phase == "*" || injection_.point.phase == point.phase;
  const bool meant = in_phase && injection_.point.name == point.name;
  if (injection_.fault == Fault::kCapacity)
    return meant && device::resources().segments >= segments_ + injection_.nth - 1;
  const std::uint64_t number = meant ? ++counts_[injection_.point] : 0;
  const bool later = injection_.fault == Fault::kPersistent && number > injection_.nth;
  if (meant && (number == injection_.nth || later)) return true;
  if (fired_ == 0 || injection_.second == 0 || reports_errors(point.name)) return false;
  return ++after_first_ == injection_.second;
}

void Injector::announce(const std::string& name) {
  ++fired_;
  failed_.insert(name);
  if (!before_) return;
  inside_ = true;
  before_(symbols_of(call_stack()));
  inside_ = false;
}

int Injector::on_call(const char* name) {
  if (!fires(name)) return 0;
  announce(name);
  if (!loses_device()) return error_of(name);
  device::lose();
  return 0;
}

void Injector::reached(trace::Step step) {
  const std::string name(step_name(step));
  if (!fires(name)) return;
  announce(name);
  if (loses_device()) {
    device::lose();
    return;
  }
  throw InjectedFault("injected at step " + name);
}

}  // namespace slotgraph::fuzz

// Fault points and the one object that makes them fail.
//
// A fault point is a runtime call or a named step of the runtime (core/trace), in a phase of the
// runtime, with its number: `cudaMalloc@warm_up#3`. Runs repeat exactly, so the number finds the
// same place again.
#ifndef FUZZ_FAULT_INJECTOR_H_
#define FUZZ_FAULT_INJECTOR_H_

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/json_reader.h"
#include "core/trace/steps.h"

namespace slotgraph::fuzz {

struct Point {
  std::string name;   // of a runtime call or step
  std::string phase;  // of the runtime, or `*`: any
  auto operator<=>(const Point&) const = default;
};
std::string to_string(const Point& point);  // `cudaMalloc@warm_up`

// Names of all calls and steps, and of all phases.
const std::vector<std::string>& point_names();
const std::vector<std::string>& phase_names();
// Shell patterns, as in `cuda*@capture_*`; without `@` every phase. Throws Error: T01 nothing has
// that name, with the nearest names.
std::vector<Point> match_points(const std::string& pattern);

enum class Fault {
  kOnce,        // that one
  kPersistent,  // and every later one of that point
  kSticky,      // the device is lost from then on
  kCapacity,    // of cudaMalloc: there is room for `nth` - 1 segments more than at the start
};
// One row for each: what it is called, and what happens.
struct FaultTraits {
  Fault fault;
  const char* name;
  const char* meaning;
  bool loses_device;  // the process in which it happens is of no further use
};
inline constexpr std::array<FaultTraits, 4> kFaults{{
    {Fault::kOnce, "once", "that call", false},
    {Fault::kPersistent, "persistent", "and all later ones", false},
    {Fault::kSticky, "sticky", "the device is lost", true},
    {Fault::kCapacity, "capacity", "room for 0, 1, 2, ... more segments of device memory", false},
}};
const FaultTraits& traits(Fault fault);
inline std::string to_string(Fault fault) { return traits(fault).name; }

struct Injection {
  Point point;
  std::uint64_t nth = 1;  // from 1, in that phase, from arming on
  Fault fault = Fault::kOnce;
  // The fault point that many after the first one that fired fails too, whatever it is: 0, none.
  std::uint64_t second = 0;
  auto operator<=>(const Injection&) const = default;
};
std::string to_string(const Injection& injection);  // `cudaMalloc@warm_up#3 once`
nlohmann::json to_json(const Injection& injection);
// Throws Error: J.., T01.
Injection injection_from_json(const JsonReader& reader);

// What a step throws that was made to fail.
struct InjectedFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Injector final : public trace::StepListener {
 public:
  // Installed in the device and in the runtime's steps with the first call; never destroyed.
  static Injector& instance();

  // Of each point, the digest of the call stack of every time that it is reached. Frames are
  // counted from the point outwards.
  using Reached = std::map<Point, std::vector<std::uint64_t>>;

  // Notes every point that this thread reaches outside of the phase `outside`, until disarm().
  void record();
  // Makes the points of this thread fail; `before` is told the call stack just before one does.
  void arm(const Injection& injection,
           std::function<void(const std::vector<std::string>& stack)> before = nullptr);
  // How often something failed.
  int disarm();
  bool loses_device() const { return traits(injection_.fault).loses_device; }
  bool persistent() const { return injection_.fault == Fault::kPersistent; }
  // The points that failed since the last arm().
  const std::set<std::string>& failed() const { return failed_; }
  bool failed(const std::string& name) const { return failed_.contains(name); }
  const Reached& reached_points() const { return reached_; }
  // The call stack of each digest, from the point outwards, as far as it counts.
  const std::map<std::uint64_t, std::vector<std::string>>& stacks() const { return stacks_; }

  void reached(trace::Step step) override;

 private:
  enum class State { kIdle, kRecording, kArmed };
  Injector();
  int on_call(const char* name);
  bool fires(std::string name);
  void announce(const std::string& name);

  State state_ = State::kIdle;
  std::thread::id thread_;
  Injection injection_;
  std::function<void(const std::vector<std::string>&)> before_;
  std::map<Point, std::uint64_t> counts_;
  std::uint64_t after_first_ = 0;
  std::size_t segments_ = 0;  // when it was armed
  int fired_ = 0;
  std::set<std::string> failed_;
  bool inside_ = false;  // of this object: what it calls is no point
  Reached reached_;
  std::map<std::uint64_t, std::vector<std::string>> stacks_;
};

}  // namespace slotgraph::fuzz

#endif  // FUZZ_FAULT_INJECTOR_H_

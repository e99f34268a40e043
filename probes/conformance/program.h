// Random programs for a caching allocator: plain values, drawn from numbers alone.
#ifndef PROBES_CONFORMANCE_PROGRAM_H_
#define PROBES_CONFORMANCE_PROGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slotgraph::conformance {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr int kStreams = 3;  // 0: the default stream
constexpr int kPools = 2;    // private pools: 1, 2; the default pool is 0
constexpr int kAny = -1;

// Where new segments lie (device::Simulation::Addresses).
enum class Policy { kAscending, kDescending, kSeeded };
inline constexpr std::array kPolicies{Policy::kAscending, Policy::kDescending, Policy::kSeeded};
std::string_view name_of(Policy policy);

enum class Kind {
  kAllocate,
  kFree,
  kRecordStream,
  kBeginScope,
  kEndScope,
  kRetain,
  kRelease,
  kEmptyCache,
  kCheckpoint,
  kRestore,
  kConfigure,
  kLimit,
  kMemory,
  kCount,
};
std::string_view name_of(Kind kind);

struct Settings {
  static constexpr std::size_t kUnlimited = SIZE_MAX / kMiB;
  std::size_t max_split_mib = kUnlimited;
  std::size_t divisions = 1;
  double garbage_threshold = 0.99;  // of a limit; the library's own default, none, cannot be set
};

// What the runtime answers, during one operation, to the first or to every call of that name.
struct Fault {
  std::string_view call;
  int error = 0;
  bool every = false;
};

// One step. Each kind reads the fields that it needs.
struct Operation {
  Kind kind = Kind::kAllocate;
  std::size_t bytes = 0;  // allocate: request; limit: of the device's memory
  int stream = 0;         // allocate, record stream; begin scope: the one that is taken, or kAny
  int pool = 0;           // scopes and pools; empty cache: 0 for all
  unsigned number = 0;    // names a live block or a checkpoint: taken modulo how many there are
  Settings settings = {};
  std::optional<Fault> fault = {};
};

struct Program {
  Policy policy = Policy::kAscending;
  std::uint64_t index = 0;
  std::uint64_t address_seed = 0;
  std::size_t capacity = 0;  // of the device
  std::vector<Operation> operations;
};

// Depends on nothing but its arguments. A third of the programs runs short of memory; a quarter has
// faults.
Program generate(std::uint64_t seed, Policy policy, std::uint64_t index, std::size_t operations);

}  // namespace slotgraph::conformance

#endif  // PROBES_CONFORMANCE_PROGRAM_H_

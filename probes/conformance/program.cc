#include "probes/conformance/program.h"

#include "core/random.h"

namespace slotgraph::conformance {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return split_mix64(state_) % bound; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <typename T, std::size_t kSize>
  const T& of(const T (&values)[kSize]) {
    return values[below(kSize)];
  }

 private:
  std::uint64_t state_;
};

struct Weighted {
  Kind kind;
  unsigned weight;
};
constexpr Weighted kWeights[] = {
    {Kind::kAllocate, 36},  {Kind::kFree, 26},   {Kind::kRecordStream, 8}, {Kind::kBeginScope, 5},
    {Kind::kEndScope, 5},   {Kind::kRetain, 2},  {Kind::kRelease, 3},      {Kind::kEmptyCache, 3},
    {Kind::kCheckpoint, 4}, {Kind::kRestore, 4}, {Kind::kConfigure, 2},    {Kind::kLimit, 1},
    {Kind::kMemory, 1},
};

Kind any_kind(Draw& draw) {
  unsigned total = 0;
  for (const Weighted& entry : kWeights) total += entry.weight;
  std::uint64_t left = draw.below(total);
  for (const Weighted& entry : kWeights) {
    if (left < entry.weight) return entry.kind;
    left -= entry.weight;
  }
  return Kind::kAllocate;
}

// Around the sizes at which the allocator decides otherwise, and between them.
std::size_t any_size(Draw& draw) {
  constexpr std::size_t kEdges[] = {1, 512, kMiB, 2 * kMiB, 10 * kMiB, 20 * kMiB, 32 * kMiB};
  switch (draw.below(8)) {
    case 0:
    case 1:
      return draw.of(kEdges) + draw.below(3) - (draw.one_in(2) ? 1 : 0);
    case 2:
      return draw.between(1, 8192);
    case 3:
    case 4:
      return draw.between(1, kMiB);
    case 5:
    case 6:
      return draw.between(kMiB, 12 * kMiB);
    default:
      return draw.between(10 * kMiB, 40 * kMiB);
  }
}

// Calls whose failure leaves the allocator sane and the process alive. Where order decides which
// call is the first, either all fail or all are alike.
constexpr Fault kAllocateFaults[] = {
    {"cudaMalloc", 2, false},  // out of memory: the allocator tries again
    {"cudaMalloc", 2, true},
    {"cudaMalloc", 719, false},  // unspecified launch failure
    {"cudaMalloc", 801, false},  // not supported
    {"cudaStreamIsCapturing", 1, false},
    {"cudaGetLastError", 999, false},  // an error of before
    {"cudaMemGetInfo", 999, false},    // while the out-of-memory message is made
    {"cudaEventQuery", 600, true},     // not ready
    {"cudaFree", 1, false},
};

std::optional<Fault> any_fault(Draw& draw, Kind kind) {
  if (!draw.one_in(5)) return std::nullopt;
  switch (kind) {
    case Kind::kAllocate:
      return draw.of(kAllocateFaults);
    case Kind::kEmptyCache:
      return Fault{"cudaFree", 719, false};
    case Kind::kLimit:
      return Fault{"cudaMemGetInfo", 719, false};
    default:
      return std::nullopt;
  }
}

Operation any_operation(Draw& draw, std::size_t capacity, bool faults) {
  constexpr std::size_t kSplits[] = {Settings::kUnlimited, Settings::kUnlimited, 21, 32};
  constexpr std::size_t kDivisions[] = {1, 2, 4, 8};
  constexpr double kThresholds[] = {0.99, 0.3, 0.6};
  constexpr std::size_t kTenths[] = {10, 10, 9, 7, 5, 3};
  Operation operation;
  operation.kind = any_kind(draw);
  operation.stream = static_cast<int>(draw.below(kStreams));
  operation.pool = static_cast<int>(draw.between(1, kPools));
  operation.number = static_cast<unsigned>(draw.below(1000));
  switch (operation.kind) {
    case Kind::kAllocate:
      operation.bytes = any_size(draw);
      break;
    case Kind::kBeginScope:
      if (draw.one_in(3)) operation.stream = kAny;
      break;
    case Kind::kEmptyCache:
      if (!draw.one_in(3)) operation.pool = 0;
      break;
    case Kind::kConfigure:
      operation.settings = {draw.of(kSplits), draw.of(kDivisions), draw.of(kThresholds)};
      break;
    case Kind::kLimit:
      operation.bytes = capacity / 10 * draw.of(kTenths);
      break;
    default:
      break;
  }
  if (faults) operation.fault = any_fault(draw, operation.kind);
  return operation;
}

}  // namespace

std::string_view name_of(Policy policy) {
  constexpr std::string_view kNames[] = {"ascending", "descending", "seeded"};
  return kNames[static_cast<int>(policy)];
}

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[] = {
      "allocate",    "free",       "record stream", "begin scope", "end scope", "retain", "release",
      "empty cache", "checkpoint", "restore",       "configure",   "limit",     "memory"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Kind::kCount));
  return kNames[static_cast<int>(kind)];
}

Program generate(std::uint64_t seed, Policy policy, std::uint64_t index, std::size_t operations) {
  std::uint64_t state =
      seed ^ kGolden * (index * kPolicies.size() + static_cast<std::uint64_t>(policy) + 1);
  Draw draw(split_mix64(state));
  constexpr std::size_t kShort[] = {80 * kMiB, 120 * kMiB, 200 * kMiB, 320 * kMiB};
  constexpr std::size_t kLarge = 1000 * kMiB;
  Program program{.policy = policy,
                  .index = index,
                  .address_seed = 1 + draw.below(std::uint64_t{1} << 32),
                  .capacity = draw.one_in(3) ? draw.of(kShort) : kLarge,
                  .operations = {}};
  const bool faults = draw.one_in(4);
  program.operations.reserve(operations);
  for (std::size_t i = 0; i < operations; ++i)
    program.operations.push_back(any_operation(draw, program.capacity, faults));
  return program;
}

}  // namespace slotgraph::conformance

#include "probes/conformance/program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace slotgraph::conformance {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kOperations = 300;

// Everything that a program holds.
std::string to_string(const Program& program) {
  std::string text = fmt::format("{} {} {} {}\n", name_of(program.policy), program.index,
                                 program.address_seed, program.capacity);
  for (const Operation& operation : program.operations) {
    const Settings& settings = operation.settings;
    text += fmt::format("{} {} {} {} {} {} {} {}", name_of(operation.kind), operation.bytes,
                        operation.stream, operation.pool, operation.number, settings.max_split_mib,
                        settings.divisions, settings.garbage_threshold);
    if (operation.fault)
      text += fmt::format(" {} {} {}", operation.fault->call, operation.fault->error,
                          operation.fault->every);
    text += "\n";
  }
  return text;
}

std::string drawn(std::uint64_t seed, Policy policy, std::uint64_t index) {
  return to_string(generate(seed, policy, index, kOperations));
}

TEST(Program, DependsOnItsArgumentsAlone) {
  const std::string one = drawn(kSeed, Policy::kSeeded, 7);
  (void)drawn(3, Policy::kAscending, 8);
  EXPECT_EQ(drawn(kSeed, Policy::kSeeded, 7), one);
}

TEST(Program, EveryOneIsAnother) {
  std::set<std::string> operations;
  for (const std::uint64_t seed : {1, 2})
    for (const Policy policy : kPolicies)
      for (std::uint64_t index = 0; index < 100; ++index) {
        const std::string text = drawn(seed, policy, index);
        operations.insert(text.substr(text.find('\n')));
      }
  EXPECT_EQ(operations.size(), 600u);
}

TEST(Program, AShorterOneIsTheBeginningOfALongerOne) {
  const std::string all = drawn(kSeed, Policy::kAscending, 0);
  const std::string part = to_string(generate(kSeed, Policy::kAscending, 0, 10));
  EXPECT_EQ(all.substr(0, part.size()), part);
}

// What a few hundred programs are made of; printed, because it is what a reader wants to see.
TEST(Program, CoversKindsSizesAndFaults) {
  std::map<std::string, int> kinds, faults, sizes;
  std::map<std::size_t, int> capacities;
  int programs_with_faults = 0;
  for (std::uint64_t index = 0; index < 300; ++index) {
    const Program program = generate(kSeed, Policy::kAscending, index, kOperations);
    ++capacities[program.capacity];
    bool any_fault = false;
    for (const Operation& operation : program.operations) {
      ++kinds[std::string(name_of(operation.kind))];
      any_fault = any_fault || operation.fault;
      if (operation.fault)
        ++faults[fmt::format("{} by {}{}", operation.fault->call, operation.fault->error,
                             operation.fault->every ? ", every one" : "")];
      if (operation.kind != Kind::kAllocate) continue;
      EXPECT_LE(operation.bytes, 40 * kMiB);
      for (const std::size_t edge : {std::size_t{512}, kMiB, 10 * kMiB, 20 * kMiB}) {
        if (operation.bytes == edge) ++sizes[fmt::format("{} bytes", edge)];
        if (operation.bytes == edge + 1) ++sizes[fmt::format("{} bytes and one", edge)];
      }
      ++sizes[operation.bytes <= kMiB       ? "small"
              : operation.bytes < 10 * kMiB ? "large"
                                            : "a segment each"];
    }
    programs_with_faults += any_fault;
  }
  const auto print = [](const auto& counts) {
    for (const auto& [name, count] : counts) fmt::print("{:>8}  {}\n", count, name);
  };
  print(kinds);
  print(sizes);
  print(faults);
  print(capacities);

  EXPECT_EQ(kinds.size(), static_cast<std::size_t>(Kind::kCount));
  for (const auto& [kind, count] : kinds) EXPECT_GT(count, 300) << kind;
  EXPECT_EQ(sizes.size(), 11u);
  for (const auto& [size, count] : sizes) EXPECT_GT(count, 50) << size;
  EXPECT_EQ(faults.size(), 11u);
  for (const auto& [fault, count] : faults) EXPECT_GT(count, 10) << fault;
  EXPECT_EQ(capacities.size(), 5u);
  EXPECT_NEAR(capacities[1000 * kMiB], 200, 40);
  EXPECT_NEAR(programs_with_faults, 75, 30);
}

// A fault of a call that the allocator makes in a destructor would end the process.
TEST(Program, FaultsAreOfCallsThatMayFail) {
  const std::map<Kind, std::set<std::string_view>> allowed{
      {Kind::kAllocate,
       {"cudaMalloc", "cudaStreamIsCapturing", "cudaGetLastError", "cudaMemGetInfo",
        "cudaEventQuery", "cudaFree"}},
      {Kind::kEmptyCache, {"cudaFree"}},
      {Kind::kLimit, {"cudaMemGetInfo"}}};
  for (std::uint64_t index = 0; index < 100; ++index)
    for (const Operation& operation :
         generate(kSeed, Policy::kSeeded, index, kOperations).operations) {
      if (!operation.fault) continue;
      ASSERT_TRUE(allowed.contains(operation.kind)) << name_of(operation.kind);
      EXPECT_TRUE(allowed.at(operation.kind).contains(operation.fault->call))
          << operation.fault->call;
    }
}

}  // namespace
}  // namespace slotgraph::conformance

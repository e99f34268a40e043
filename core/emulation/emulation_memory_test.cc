// Poison, capacity and addresses of the emulation.
#include <algorithm>
#include <set>

#include "core/emulation/emulation_testing.h"

namespace slotgraph::emulation {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class MemoryTest : public EmulationTest {};
class AddressTest : public EmulationTest {};

TEST_F(MemoryTest, FreshMemoryIsPoisonedEachTime) {
  for (std::uint8_t poison : {0xFF, 0xA5, 0x00, 0xFF}) {
    slotgraph_emulation_set_poison(poison);
    const std::size_t bytes = 4 * kMiB + 1;
    const Buffer device(bytes);
    std::vector<std::uint8_t> found(bytes);
    EXPECT_OK(cudaMemcpy(found.data(), device.get(), bytes, cudaMemcpyDeviceToHost));
    EXPECT_EQ(std::count(found.begin(), found.end(), poison), static_cast<long>(bytes));
    EXPECT_OK(cudaMemset(device.get(), 0x11, bytes));  // must not reach the next segment
    EXPECT_OK(cudaMemcpy(found.data(), device.get(), bytes, cudaMemcpyDeviceToHost));
    EXPECT_EQ(std::count(found.begin(), found.end(), 0x11), static_cast<long>(bytes));
  }
}

TEST_F(MemoryTest, CapacityLimitsEachDevice) {
  slotgraph_emulation_set_capacity(6 * kMiB);
  std::size_t free = 0, total = 0;
  void* refused = nullptr;
  {
    const Buffer first(4 * kMiB);
    EXPECT_OK(cudaMemGetInfo(&free, &total));
    EXPECT_EQ(free, 2 * kMiB);
    EXPECT_EQ(total, 6 * kMiB);
    EXPECT_EQ(cudaMalloc(&refused, 2 * kMiB + 1), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMalloc(&refused, SIZE_MAX), cudaErrorMemoryAllocation);
    const Buffer second(2 * kMiB);
    EXPECT_EQ(cudaMalloc(&refused, 1), cudaErrorMemoryAllocation);
    slotgraph_emulation_set_capacity(2 * kMiB);  // less than is in use
    EXPECT_OK(cudaMemGetInfo(&free, &total));
    EXPECT_EQ(free, 0u);
    slotgraph_emulation_set_capacity(6 * kMiB);
    EXPECT_EQ(slotgraph_emulation_set_device_count(2), 0);
    EXPECT_OK(cudaSetDevice(1));
    const Buffer elsewhere(6 * kMiB);
    EXPECT_EQ(slotgraph_emulation_usage().device_bytes, 12 * kMiB);
  }
  EXPECT_OK(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(free, 6 * kMiB);
}

TEST_F(MemoryTest, UsageCountsWhatLives) {
  const Stream stream;
  const auto before = slotgraph_emulation_usage();
  const Buffer device(1);
  const Pinned<char> pinned;
  EXPECT_OK(cudaMemsetAsync(device.get(), 1, 1, stream));
  EXPECT_OK(begin_capture(stream));
  const cudaGraph_t graph = end_capture(stream);
  const cudaGraphExec_t executable = instantiate(graph);
  const auto after = slotgraph_emulation_usage();
  EXPECT_EQ(after.segments, before.segments + 1);
  EXPECT_EQ(after.pinned_bytes, before.pinned_bytes + 4096);
  EXPECT_EQ(after.queued, 1u);
  EXPECT_EQ(after.graphs, before.graphs + 2);
  EXPECT_OK(cudaGraphExecDestroy(executable));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_EQ(slotgraph_emulation_usage().graphs, before.graphs);
}

TEST_F(MemoryTest, FreeWaitsForWorkThatUsesIt) {
  const Stream stream;
  const Pinned<std::uint8_t> result;
  {
    const Buffer device(1);
    EXPECT_OK(cudaMemsetAsync(device.get(), 5, 1, stream));
    EXPECT_OK(cudaMemcpyAsync(result.get(), device.get(), 1, cudaMemcpyDeviceToHost, stream));
  }
  EXPECT_EQ(result[0], 5);
}

using Addresses = std::vector<std::uintptr_t>;

void* allocate(std::size_t bytes) {
  void* pointer = nullptr;
  EXPECT_OK(cudaMalloc(&pointer, bytes));
  return pointer;
}

std::uintptr_t number(void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// The addresses of segments of these sizes, which are all freed again, the middle ones first.
Addresses addresses_of(const std::vector<std::size_t>& sizes) {
  std::vector<void*> live;
  Addresses result;
  for (std::size_t bytes : sizes) live.push_back(allocate(bytes));
  for (void* pointer : live) result.push_back(number(pointer));
  std::rotate(live.begin(), live.begin() + static_cast<long>(live.size() / 2), live.end());
  for (void* pointer : live) EXPECT_OK(cudaFree(pointer));
  return result;
}

const std::vector<std::size_t> kSizes{2 * kMiB, 20 * kMiB, 1, 40 * kMiB, 2 * kMiB, 6 * kMiB};

class AddressPolicyTest : public AddressTest,
                          public ::testing::WithParamInterface<SlotgraphAddressPolicy> {};

TEST_P(AddressPolicyTest, DisjointAndTheSameAgainOnceEverythingIsFree) {
  slotgraph_emulation_set_address_policy(GetParam());
  slotgraph_emulation_set_seed(11);
  const Addresses first = addresses_of(kSizes);
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    EXPECT_EQ(first[i] % (2 * kMiB), 0u);
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_TRUE(first[i] + kSizes[i] <= first[j] || first[j] + kSizes[j] <= first[i]);
    }
  }
  slotgraph_emulation_set_seed(11);  // the seeded policy has drawn
  EXPECT_EQ(addresses_of(kSizes), first);
}

INSTANTIATE_TEST_SUITE_P(All, AddressPolicyTest,
                         ::testing::Values(SLOTGRAPH_ADDRESS_ASCENDING,
                                           SLOTGRAPH_ADDRESS_DESCENDING, SLOTGRAPH_ADDRESS_SEEDED));

TEST_F(AddressTest, AscendingTakesTheLowestFreePlace) {
  void* const first = allocate(2 * kMiB);
  void* const second = allocate(4 * kMiB);
  void* const third = allocate(1);
  EXPECT_EQ(number(second), number(first) + 2 * kMiB);
  EXPECT_EQ(number(third), number(second) + 4 * kMiB);
  EXPECT_OK(cudaFree(second));
  void* const too_long = allocate(6 * kMiB);
  void* const fitting = allocate(4 * kMiB);
  EXPECT_GT(too_long, third);
  EXPECT_EQ(fitting, second);
  for (void* pointer : {first, third, too_long, fitting}) EXPECT_OK(cudaFree(pointer));
}

TEST_F(AddressTest, DescendingGoesUpInAChunkAndDownFromChunkToChunk) {
  slotgraph_emulation_set_address_policy(SLOTGRAPH_ADDRESS_DESCENDING);
  const Addresses found = addresses_of({20 * kMiB, 12 * kMiB, 20 * kMiB, 64 * kMiB});
  EXPECT_EQ(found[1], found[0] + 20 * kMiB);
  EXPECT_EQ(found[2], found[0] - 32 * kMiB);
  EXPECT_EQ(found[3], found[2] - 64 * kMiB);
}

TEST_F(AddressTest, SeededDependsOnTheSeed) {
  slotgraph_emulation_set_address_policy(SLOTGRAPH_ADDRESS_SEEDED);
  std::set<Addresses> found;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    slotgraph_emulation_set_seed(seed);
    found.insert(addresses_of(kSizes));
  }
  EXPECT_EQ(found.size(), 20u);
}

TEST_F(AddressTest, DevicesHaveDisjointRanges) {
  ASSERT_EQ(slotgraph_emulation_set_device_count(8), 0);
  EXPECT_EQ(slotgraph_emulation_set_device_count(9), -1);
  EXPECT_EQ(slotgraph_emulation_set_device_count(0), -1);
  int count = 0;
  EXPECT_OK(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 8);
  for (auto policy : {SLOTGRAPH_ADDRESS_ASCENDING, SLOTGRAPH_ADDRESS_DESCENDING}) {
    slotgraph_emulation_set_address_policy(policy);
    std::set<void*> found;
    for (int device = 0; device < count; ++device) {
      EXPECT_OK(cudaSetDevice(device));
      void* const pointer = allocate(1);
      cudaPointerAttributes attributes;
      EXPECT_OK(cudaPointerGetAttributes(&attributes, pointer));
      EXPECT_EQ(attributes.device, device);
      found.insert(pointer);
    }
    EXPECT_EQ(found.size(), 8u);
    for (void* pointer : found) EXPECT_OK(cudaFree(pointer));
  }
}

TEST_F(AddressTest, CopiesBetweenDevicesNameTheirOwners) {
  ASSERT_EQ(slotgraph_emulation_set_device_count(2), 0);
  const Buffer here(8);
  EXPECT_OK(cudaSetDevice(1));
  const Buffer there(8);
  EXPECT_OK(cudaSetDevice(0));
  std::uint8_t found = 0;
  EXPECT_OK(cudaMemset(here.get(), 9, 8));
  EXPECT_OK(cudaMemcpyPeerAsync(there.get(), 1, here.get(), 0, 8, nullptr));
  EXPECT_OK(cudaMemcpy(&found, there.get(), 1, cudaMemcpyDefault));
  EXPECT_EQ(found, 9);
  EXPECT_EQ(cudaMemcpyPeerAsync(there.get(), 0, here.get(), 1, 8, nullptr), cudaErrorInvalidValue);
}

using FreedMemoryDeathTest = MemoryTest;

TEST_F(FreedMemoryDeathTest, LateAccessEndsTheProcess) {
  void* const pointer = allocate(1);
  EXPECT_OK(cudaFree(pointer));
  EXPECT_DEATH(*static_cast<volatile char*>(pointer) = 1, "");
}

}  // namespace
}  // namespace slotgraph::emulation

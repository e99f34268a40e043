#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/device/device.h"
#include "core/error.h"
#include "core/memory/borrowed.h"
#include "core/memory/placing_allocator.h"
#include "core/memory/pool_topology.h"
#include "core/memory/private_pool.h"

namespace slotgraph {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

struct Memory : ::testing::Test {
  static void SetUpTestSuite() { device::initialise(); }
  Memory() : guard(c10::cuda::getStreamFromPool()) {}
  static std::size_t allocated() {
    return static_cast<std::size_t>(caching::getDeviceStats(0).allocated_bytes[0].current);
  }
  static at::Tensor bytes(std::int64_t count) {
    return at::empty({count}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
  }
  c10::cuda::CUDAStreamGuard guard;
};

TEST_F(Memory, AScopeTakesThisThreadsAllocationsAndGivesItsCountBack) {
  const PrivatePool pool;
  {
    const AllocationScope scope(pool);
    const at::Tensor inside = bytes(100);
    EXPECT_EQ(topology_of(pool).reserved_bytes(), std::size_t{2} << 20);
    std::thread([] { bytes(3 << 20); }).join();
    EXPECT_EQ(topology_of(pool).reserved_bytes(), std::size_t{2} << 20)
        << "another thread allocates elsewhere";
  }
  const at::Tensor outside = bytes(3 << 20);
  EXPECT_EQ(topology_of(pool).reserved_bytes(), std::size_t{2} << 20);
  EXPECT_EQ(caching::get()->getPoolUseCount(0, pool.id()), 1);
}

TEST_F(Memory, ASlabLivesAsLongAsATensorThatBorrowsFromIt) {
  const PrivatePool pool;
  const std::size_t before = allocated();
  auto slab = std::make_shared<Slab>(pool, 4096);
  at::Tensor borrowed = borrowed_tensor(slab->base() + 512, {4, 2}, {2, 1}, at::kFloat, slab);
  EXPECT_TRUE(slab->contains(borrowed.const_data_ptr()));
  EXPECT_FALSE(slab->contains(slab->base() + 4096));
  slab.reset();
  EXPECT_EQ(allocated(), before + 4096);
  borrowed = at::Tensor();
  EXPECT_EQ(allocated(), before);
  EXPECT_EQ(Slab(pool, 0).base(), nullptr);
}

TEST_F(Memory, ARecordingTellsTransientsFromSurvivorsWhoeverFreesThem) {
  std::shared_ptr<const Recording> recording;
  at::Tensor survivor;
  {
    const Session session;
    recording = session.recording();
    bytes(600);
    survivor = bytes(700);
    bytes(0);
    void* const raw = caching::raw_alloc(800);
    caching::raw_delete(raw);
    std::thread([] { bytes(900); }).join();
  }
  bytes(1000);
  const auto allocations = recording->snapshot();
  ASSERT_EQ(allocations.size(), 2u) << "empty, raw, foreign and later ones are not counted";
  EXPECT_EQ(allocations[0].bytes, 600u);
  EXPECT_FALSE(allocations[0].alive);
  EXPECT_TRUE(allocations[1].alive);
  EXPECT_EQ(allocations[1].address, survivor.const_data_ptr());
  std::thread([&] { survivor = at::Tensor(); }).join();
  for (const Allocation& allocation : recording->snapshot()) EXPECT_FALSE(allocation.alive);
}

TEST_F(Memory, OneSessionAtATimeAndTheNativeAllocatorComesBack) {
  auto* const native = caching::get();
  {
    const Session session;
    EXPECT_NE(caching::get(), native);
    EXPECT_EQ(caching::get()->name(), native->name());
    try {
      const Session second;
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.rule(), "G01");
    }
  }
  EXPECT_EQ(caching::get(), native);
}

TEST_F(Memory, PlannedAllocationsOfACaptureLieAtTheirOffsets) {
  const PrivatePool pool;
  const std::size_t before = allocated();
  {
    const auto slab = std::make_shared<Slab>(pool, 8192);
    const c10::cuda::CUDAStream other_stream = c10::cuda::getStreamFromPool();
    {
      const c10::cuda::CUDAStreamGuard other(other_stream);
      bytes(900);  // a new segment could not be had while the capture is open
    }
    const auto graph = device::make_graph();
    graph->begin_capture(pool.id());
    at::Tensor first, wrong_size, third;
    std::shared_ptr<const Recording> recording;
    {
      const PlacementPlan plan{{{600, 1024}, {700, 2048}, {800, 4096}}, {slab, 512, 7680}};
      const Session session(*graph, plan);
      recording = session.recording();
      first = bytes(600);
      wrong_size = bytes(701);
      third = bytes(800);
      const c10::cuda::CUDAStreamGuard other(other_stream);
      bytes(900);
    }
    graph->end_capture();
    EXPECT_EQ(first.const_data_ptr(), slab->base() + 512 + 1024);
    EXPECT_EQ(third.const_data_ptr(), slab->base() + 512 + 4096);
    EXPECT_FALSE(slab->contains(wrong_size.const_data_ptr()));
    const auto allocations = recording->snapshot();
    ASSERT_EQ(allocations.size(), 3u) << "a stream outside the capture is not counted";
    EXPECT_TRUE(allocations[0].placed && !allocations[1].placed && allocations[2].placed);
    first = at::Tensor();
    EXPECT_FALSE(recording->snapshot()[0].alive);
  }
  device::synchronise();
  EXPECT_EQ(allocated(), before) << "a placed block holds its arena, and no longer";
}

}  // namespace
}  // namespace slotgraph

// Checkpoints: what they are, what is refused, and switches that succeed.
#include "core/memory/checkpoint_fixture.h"

namespace slotgraph::checkpoint_fixture {
namespace {

using ::testing::HasSubstr;

TEST_F(BranchTest, ASwitchRestoresOwnersAndTopology) {
  expect_all(post_only, detached);
  expect_advances();
  expect_writable({kept[0], kept[1], kept[2], kept[3], post_only[0], post_only[1], post_only[2]});
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(ownership(post_only[i].storage()).address, before.owners[4 + i].address);
}

TEST_F(BranchTest, OwnersInBothCheckpointsKeepTheirBytes) {
  const auto expect_bytes = [&] {
    EXPECT_TRUE(holds(kept[0], 1) && holds(kept[1], 2) && holds(kept[2], 4) && holds(kept[3], 5));
  };
  expect_bytes();
  {
    FaultyAllocator faulty;
    faulty.before_set = throw_at(1);
    expect_rolled_back("injected");
  }
  expect_bytes();
  EXPECT_TRUE(holds(fresh[0], 9) && holds(fresh[1], 9) && holds(fresh[2], 9));
  advance();
  expect_bytes();
}

TEST_F(BranchTest, DetachedLeftoversFreeNothingWhenTheyDie) {
  advance();
  const PoolTopology topology = topology_of(pool);
  fresh.clear();
  current = {};
  device::synchronise();
  EXPECT_TRUE(topology_of(pool) == topology);
  post_only.clear();
  post = {};
  EXPECT_EQ(topology_of(pool).live(), pre.live) << "an owner frees its block";
}

// The allocator reports what it freed and brought back in an order that depends on addresses of its
// own objects.
TEST_F(BranchTest, TheOrderInWhichTheAllocatorReportsDoesNotMatter) {
  for (int turn = 0; turn < 8; ++turn) {
    struct Scene final : BranchTest {
      void TestBody() override {}
    } scene;
    FaultyAllocator faulty;
    faulty.after_set = [turn](int, caching::CheckpointDelta& delta) {
      const auto rearrange = [turn](auto& list) {
        if (turn % 2 == 1) std::reverse(list.begin(), list.end());
        if (!list.empty())
          std::rotate(list.begin(), list.begin() + turn % static_cast<int>(list.size()),
                      list.end());
      };
      rearrange(delta.ptrs_freed);
      rearrange(delta.dataptrs_allocd);
    };
    scene.expect_advances();
    scene.expect_writable(scene.kept);
    scene.expect_writable(scene.post_only);
  }
}

TEST_F(BranchTest, AStorageThatIsHeldByAViewOnlyComesBackToo) {
  at::Tensor view = post_only[0].slice(0, 10, 20);
  post_only.erase(post_only.begin());
  advance();
  EXPECT_TRUE(owned(view.storage()));
}

TEST_F(CheckpointTest, AHundredSwitchesOfAHundredBlocks) {
  std::vector<at::Tensor> kept, leftovers;
  for (int i = 0; i < 50; ++i) kept.push_back(in_pool(1 + 37'000 * i, i));
  const Checkpoint pre = checkpoint({&kept});
  for (int i = 0; i < 50; ++i) leftovers.push_back(in_pool(1 + 41'000 * i, 50 + i));
  const Checkpoint post = checkpoint({&kept, &leftovers});
  const PoolTopology topology = topology_of(pool);
  ASSERT_EQ(post.live.size(), 100u);
  const Picture picture_post = picture({&kept, &leftovers});
  for (int round = 0; round < 50; ++round) {
    switch_pool(pool, post, pre, "rewind");
    EXPECT_EQ(topology_of(pool).live(), pre.live);
    switch_pool(pool, pre, post, "advance");
    ASSERT_TRUE(picture({&kept, &leftovers}) == picture_post) << round;
  }
  EXPECT_TRUE(grew_only_free(topology, topology_of(pool)));
}

TEST_F(CheckpointTest, ABlockWithTwoOwnersIsRefused) {
  const std::vector<at::Tensor> tensors{in_pool(600, 1)};
  const c10::Storage& first = tensors[0].storage();
  void* const address = first.mutable_data();
  c10::Storage second(c10::Storage::use_byte_size_t(), 600,
                      at::DataPtr(address, address, caching::get()->raw_deleter(), first.device()));
  const Picture before = picture({&tensors});
  EXPECT_EQ(rule([&] { take_checkpoint(pool, {first, second}); }), "K09");
  EXPECT_TRUE(picture({&tensors}) == before);
  second.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().release_context();
}

TEST_F(CheckpointTest, AnOwnerInsideABlockIsRefused) {
  const std::vector<at::Tensor> tensors{in_pool(600, 1)};
  const c10::Storage& first = tensors[0].storage();
  void* const inside = static_cast<std::byte*>(first.mutable_data()) + 512;
  c10::Storage second(c10::Storage::use_byte_size_t(), 88,
                      at::DataPtr(inside, inside, caching::get()->raw_deleter(), first.device()));
  const Picture before = picture({&tensors});
  EXPECT_EQ(rule([&] { take_checkpoint(pool, {first, second}); }), "K09");
  EXPECT_TRUE(picture({&tensors}) == before);
  second.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().release_context();
}

TEST_F(CheckpointTest, BlocksWithoutOwnerAreCountedAndMeasured) {
  const std::vector<at::Tensor> tensors{in_pool(600, 1), in_pool(5000, 2), in_pool(100, 3)};
  const Picture before = picture({&tensors});
  try {
    take_checkpoint(pool, {tensors[0].storage()});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.rule(), "K09");
    EXPECT_THAT(error.what(), HasSubstr("2 blocks"));
    EXPECT_THAT(error.what(), HasSubstr("5120 bytes"));
    EXPECT_THAT(error.what(), HasSubstr("512 bytes"));
  }
  EXPECT_TRUE(picture({&tensors}) == before);
}

TEST_F(CheckpointTest, RootsThatOwnNothingOfThePoolArePassedOver) {
  const std::vector<at::Tensor> tensors{in_pool(600, 1)};
  const c10::Storage& owner = tensors[0].storage();
  const c10::Storage view(
      c10::Storage::use_byte_size_t(), 8,
      at::DataPtr(owner.mutable_data(), nullptr, &c10::detail::deleteNothing, owner.device()));
  const at::Tensor elsewhere = bytes(600);
  const at::Tensor cpu = at::empty({600}, at::kByte);
  const Owners owners = resolve_owners(
      topology_of(pool).live(),
      {c10::Storage(), view, owner, cpu.storage(), elsewhere.storage(), bytes(0).storage(), owner});
  ASSERT_EQ(owners.size(), 1u);
  EXPECT_EQ(owners.begin()->second.unsafeGetStorageImpl(), owner.unsafeGetStorageImpl());
}

TEST_F(PendingTest, SettleRetiresFreesThatWaitForAnotherStream) {
  use_on_other_stream(fresh[0]);
  current = {};
  fresh.erase(fresh.begin());
  ASSERT_EQ(topology_of(pool).pending().size(), 1u);
  settle(pool);
  EXPECT_TRUE(topology_of(pool).pending().empty());
}

TEST_F(PendingTest, FreesThatKeepWaitingAreRefused) {
  use_on_other_stream(fresh[0]);
  current = {};
  fresh.erase(fresh.begin());
  const Picture before = now();
  {
    // With a scope open the allocator does not look at events.
    const PrivatePool another;
    const AllocationScope scope(another);
    EXPECT_EQ(rule([&] { settle(pool); }), "K09");
  }
  EXPECT_TRUE(now() == before);
  // No checkpoint while events are outstanding.
  EXPECT_THROW(take_checkpoint(pool, roots({&kept, &fresh})), c10::Error);
  EXPECT_THROW(switch_pool(pool, post, pre, "early"), c10::Error);
  EXPECT_TRUE(now() == before);
}

TEST_F(PendingTest, ABlockThatAnotherStreamUsedIsSwitched) {
  use_on_other_stream(fresh[1]);
  use_on_other_stream(kept[3]);
  expect_advances();
}

// A free throws, and one before it waits for an event: the rollback must wait for the device too.
TEST_F(PendingTest, BlocksThatAnotherStreamUsedAreRolledBack) {
  for (int k = 1; k <= 7; ++k) {
    for (const at::Tensor& tensor : fresh) use_on_other_stream(tensor);
    FaultyAllocator faulty;
    faulty.before_delete = throw_at(k);
    expect_rolled_back("injected");
  }
  expect_advances();
}

}  // namespace
}  // namespace slotgraph::checkpoint_fixture

// Switches that are refused, rolled back, or end the process.
#include "core/memory/checkpoint_fixture.h"

namespace slotgraph::checkpoint_fixture {
namespace {

using ::testing::HasSubstr;

TEST_F(BranchTest, ACurrentThatIsNotWhatThePoolHoldsIsRefusedUntouched) {
  const auto refused = [&](const std::function<void(Checkpoint&)>& spoil) {
    Checkpoint spoilt = current;
    spoil(spoilt);
    EXPECT_EQ(rule([&] { switch_pool(pool, spoilt, post, "bad"); }), "S1");
    expect_untouched();
  };
  const void* const address = current.live.begin()->first;
  // An owner is missing, moved or detached.
  refused([&](Checkpoint& c) { c.owners.erase(address); });
  refused([&](Checkpoint& c) { c.live.erase(address); });
  refused([&](Checkpoint& c) {
    c.owners[address] = kept[0].storage().data() == address ? kept[1].storage() : kept[0].storage();
  });
  refused([&](Checkpoint& c) { c.owners[address] = post_only[0].storage(); });
  refused([&](Checkpoint& c) { c.owners[address] = c10::Storage(); });
  expect_advances();
}

TEST_F(BranchTest, AnOldCurrentIsRefusedUntouched) {
  EXPECT_EQ(rule([&] { switch_pool(pool, post, pre, "twice"); }), "S1");
  expect_untouched();
}

TEST_F(BranchTest, ATargetThatCannotTakeItsBlocksIsRefusedUntouched) {
  const auto refused = [&](const std::function<void(Checkpoint&)>& spoil) {
    Checkpoint spoilt = post;
    spoil(spoilt);
    EXPECT_EQ(rule([&] { switch_pool(pool, current, spoilt, "bad"); }), "S1");
    expect_untouched();
  };
  const void* const address = post_only[0].storage().data();
  refused([&](Checkpoint& c) { c.owners.erase(address); });
  refused([&](Checkpoint& c) { c.live.erase(address); });
  refused([&](Checkpoint& c) { c.owners[address] = c10::Storage(); });
  refused([&](Checkpoint& c) { c.owners[address] = post_only[1].storage(); });
  refused([&](Checkpoint& c) { c.owners[kept[0].storage().data()] = fresh[0].storage(); });
  // At the right address, but an owner that `current` does not know.
  void* const there = post_only[0].storage().mutable_data();
  c10::Storage foreign(
      c10::Storage::use_byte_size_t(), 700,
      at::DataPtr(there, there, caching::get()->raw_deleter(), post_only[0].device()));
  refused([&](Checkpoint& c) { c.owners[address] = foreign; });
  foreign.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().release_context();
  expect_advances();
}

TEST_F(BranchTest, AFreeThatThrowsIsRolledBack) {
  ASSERT_EQ(current.live.size(), 7u);
  for (int k = 1; k <= 7; ++k) {
    SCOPED_TRACE(k);
    {
      FaultyAllocator faulty;  // the storage has given the block up by then
      faulty.before_delete = throw_at(k);
      expect_rolled_back("injected");
    }
    FaultyAllocator faulty;  // the block is free, its owner detached
    faulty.after_delete = throw_at(k);
    expect_rolled_back("injected");
  }
  expect_advances();
}

TEST_F(BranchTest, AnOwnerThatMovesWhileItsBlockIsFreedIsRolledBack) {
  {
    FaultyAllocator faulty;
    faulty.after_delete = [&](int call) {
      if (call != 1) return;
      const auto& [address, owner] = *current.owners.begin();
      c10::Storage(owner).set_data_ptr_noswap(at::DataPtr(
          const_cast<std::byte*>(static_cast<const std::byte*>(address)) + 512, owner.device()));
    };
    expect_rolled_back("S2");
  }
  expect_advances();
}

TEST_F(BranchTest, AThrowAroundTheSetStateIsRolledBack) {
  {
    FaultyAllocator faulty;  // all owners are detached, and the pool is empty
    faulty.before_set = throw_at(1);
    expect_rolled_back("injected");
  }
  {
    FaultyAllocator faulty;  // the target is back, and nobody owns its blocks
    faulty.after_set = [](int call, auto&) { throw_at(1)(call); };
    expect_rolled_back("injected");
  }
  expect_advances();
}

TEST_F(BranchTest, AnExceptionThatIsNoStdExceptionIsRolledBack) {
  {
    FaultyAllocator faulty;
    faulty.before_set = [](int call) {
      if (call == 1) throw 7;
    };
    EXPECT_THROW(advance(), int);
    expect_untouched();
  }
  expect_advances();
}

// The allocator itself does not take the state.
TEST_F(BranchTest, ATargetWithoutStateIsRolledBack) {
  const auto state = std::exchange(post.state, nullptr);
  expect_rolled_back("allocator");
  post.state = state;
  expect_advances();
}

// A block does not come back.
TEST_F(BranchTest, AMissingBlockIsRolledBack) {
  for (std::size_t i = 0; i < post.live.size(); ++i) {
    SCOPED_TRACE(i);
    FaultyAllocator faulty;
    faulty.after_set = [&](int call, caching::CheckpointDelta& delta) {
      if (call == 1) delta.dataptrs_allocd.erase(delta.dataptrs_allocd.begin() + long(i));
    };
    expect_rolled_back("S5");
  }
  expect_advances();
}

// The rollback frees the block, so nobody may own it.
TEST_F(BranchTest, ABlockTooManyInTheResultIsRolledBack) {
  {
    FaultyAllocator faulty;
    faulty.after_set = [&](int call, auto&) {
      if (call != 1) return;
      const AllocationScope scope(pool);
      caching::raw_alloc(600);
    };
    expect_rolled_back("S7");
  }
  expect_advances();
}

// The stray stays its own storage's, and works.
TEST_F(BranchTest, AStrayAllocationIsRolledBackAndKeepsItsOwner) {
  at::Tensor stray = in_pool(800, 7);
  before = now();
  const Ownership stray_before = ownership(stray.storage());
  expect_rolled_back("S4");
  EXPECT_EQ(ownership(stray.storage()), stray_before);
  expect_writable({stray});
  stray = at::Tensor();
  EXPECT_EQ(topology_of(pool).live(), current.live) << "its death frees it";
  expect_advances();
}

// Blocks that the allocator meets in the pool become pending, so it finds their segments occupied
// after it has freed everything.
TEST_F(PendingTest, AFailureInsideTheAllocatorIsRolledBack) {
  {
    FaultyAllocator faulty;
    faulty.before_set = [&](int call) {
      if (call != 1) return;
      for (const std::int64_t size : {600, 3 << 20}) {
        const at::Tensor stray = in_pool(size, 7);
        use_on_other_stream(stray);
        auto& pointer = stray.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
        pointer.release_context();
      }
    };
    expect_rolled_back("allocator");
    EXPECT_EQ(faulty.deletes, 7) << "after a failed set no address is safe to free";
  }
  expect_advances();
}

// Between a checkpoint and the switch to it somebody empties the cache. `late` has a segment
// of its own, which is without blocks by then.
TEST_F(CheckpointTest, AFlushTakesNoSegmentOfAPoolThatIsHeld) {
  const std::vector<at::Tensor> kept{in_pool(600, 1)};
  const Checkpoint pre = checkpoint({&kept});
  const std::vector<at::Tensor> late{in_pool(30 << 20, 2)};
  const Checkpoint post = checkpoint({&kept, &late});
  const Picture before = picture({&kept, &late});
  switch_pool(pool, post, pre, "rewind");
  caching::emptyCache();
  caching::emptyCache(pool.id());
  switch_pool(pool, pre, post, "advance");
  EXPECT_TRUE(picture({&kept, &late}) == before);
}

// Nobody held the pool for a while, and its segment, at whose address others are now, is gone: the
// allocator fails inside the switch.
TEST_F(CheckpointTest, ASwitchToASegmentThatIsGoneIsRolledBack) {
  Checkpoint post;
  {
    const std::vector<at::Tensor> late{in_pool(30 << 20, 1)};
    post = checkpoint({&late});
  }
  post.owners.clear();
  caching::releasePool(0, pool.id());
  caching::emptyCache();
  caching::createOrIncrefPool(0, pool.id());
  const at::Tensor others = bytes(30 << 20);
  const auto [address, size] = *post.live.begin();
  ASSERT_EQ(others.const_data_ptr(), address);
  post.owners[address] = c10::Storage(c10::Storage::use_byte_size_t(), size,
                                      at::DataPtr(others.mutable_data_ptr(), others.device()));
  const std::vector<at::Tensor> kept{in_pool(600, 2), in_pool(3 << 20, 3)};
  const Checkpoint pre = checkpoint({&kept});
  const Picture before = picture({&kept});
  EXPECT_THROW(switch_pool(pool, pre, post, "advance"), c10::Error);
  const Picture after = picture({&kept});
  EXPECT_TRUE(grew_only_free(before.topology, after.topology));
  EXPECT_EQ(after.owners, before.owners);
  EXPECT_TRUE(holds(kept[0], 2) && holds(kept[1], 3));
}

using CheckpointDeathTest = PendingTest;

// The text has both errors and what is lost.
TEST_F(CheckpointDeathTest, ARollbackThatFailsEndsTheProcess) {
  EXPECT_EXIT(
      {
        FaultyAllocator faulty;
        faulty.before_set = [](int call) { throw Injected("cause " + std::to_string(call)); };
        advance();
      },
      ::testing::ExitedWithCode(70),
      "branch 1: cause 1; the rollback failed too: cause [2-9]; lost: 7 blocks: .*bytes");
}

TEST_F(CheckpointDeathTest, ARollbackThatMissesABlockEndsTheProcess) {
  EXPECT_EXIT(
      {
        FaultyAllocator faulty;
        faulty.before_delete = throw_at(3);
        faulty.after_set = [](int, auto& delta) { delta.dataptrs_allocd.pop_back(); };
        advance();
      },
      ::testing::ExitedWithCode(70), "branch 1: injected; .*R5.*lost: 7 blocks");
}

TEST_F(CheckpointDeathTest, ARollbackThatRestoresTooMuchEndsTheProcess) {
  EXPECT_EXIT(
      {
        FaultyAllocator faulty;
        faulty.before_delete = throw_at(3);
        faulty.after_set = [&](int, auto&) {
          const AllocationScope scope(pool);
          caching::raw_alloc(600);
        };
        advance();
      },
      ::testing::ExitedWithCode(70), "branch 1: injected; .*R7.*lost: 7 blocks");
}

TEST_F(CheckpointDeathTest, ARollbackThatFailsWithAnUnknownExceptionEndsTheProcess) {
  EXPECT_EXIT(
      {
        FaultyAllocator faulty;
        faulty.before_set = [](int) { throw 7; };
        advance();
      },
      ::testing::ExitedWithCode(70), "branch 1: .*unknown type.*failed too.*lost: 7 blocks");
}

// With a scope open, which is forbidden, freed blocks wait for ever.
TEST_F(CheckpointDeathTest, FreesThatKeepWaitingEndTheProcess) {
  for (const at::Tensor& tensor : fresh) use_on_other_stream(tensor);
  EXPECT_EXIT(
      {
        const PrivatePool another;
        const AllocationScope scope(another);
        advance();
      },
      ::testing::ExitedWithCode(70), "branch 1: .*K09.*failed too.*lost: 7 blocks");
}

}  // namespace
}  // namespace slotgraph::checkpoint_fixture

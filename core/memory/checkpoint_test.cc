#include "core/memory/checkpoint.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/device/device.h"
#include "core/error.h"
#include "core/memory/forwarding_allocator.h"

// "Row" in comments: the row of the table in runtime.md 5.9.
namespace slotgraph {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using ::testing::HasSubstr;

// One storage as O7 compares it.
struct Ownership {
  const void* storage;
  const void* address;
  const void* context;
  c10::DeleterFnPtr deleter;
  bool operator==(const Ownership&) const = default;
};

Ownership ownership(const c10::Storage& s) {
  return {s.unsafeGetStorageImpl(), s.data(), s.data_ptr().get_context(),
          s.data_ptr().get_deleter()};
}

bool owned(const c10::Storage& s) {
  return s.data() && s.data_ptr().get_context() == s.data() &&
         s.data_ptr().get_deleter() == caching::get()->raw_deleter();
}

bool detached(const c10::Storage& s) {
  return s.data() && !s.data_ptr().get_context() &&
         s.data_ptr().get_deleter() == &c10::detail::deleteNothing;
}

struct Picture {
  PoolTopology topology;
  std::vector<Ownership> owners;
  bool operator==(const Picture&) const = default;
};

struct Injected : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Fails where a test wants it. Calls are counted from 1 and over switch and rollback together, so a
// hook for one number fires once.
class FaultyAllocator : public ForwardingAllocator {
 public:
  using Hook = std::function<void(int call)>;
  using DeltaHook = std::function<void(int call, caching::CheckpointDelta& delta)>;
  FaultyAllocator() : ForwardingAllocator(caching::get()) { caching::allocator.store(this); }
  ~FaultyAllocator() override { caching::allocator.store(native_); }

  void raw_delete(void* p) override {
    const int call = ++deletes;
    if (before_delete) before_delete(call);
    native_->raw_delete(p);
    if (after_delete) after_delete(call);
  }
  caching::CheckpointDelta setCheckpointPoolState(
      c10::DeviceIndex d, std::shared_ptr<caching::AllocatorState> state) override {
    const int call = ++sets;
    if (before_set) before_set(call);
    caching::CheckpointDelta delta = native_->setCheckpointPoolState(d, std::move(state));
    if (after_set) after_set(call, delta);
    return delta;
  }

  int deletes = 0;
  int sets = 0;
  Hook before_delete, after_delete, before_set;
  DeltaHook after_set;
};

FaultyAllocator::Hook throw_at(int k) {
  return [k](int call) {
    if (call == k) throw Injected("injected");
  };
}

struct CheckpointTest : ::testing::Test {
  static void SetUpTestSuite() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    device::initialise();
  }
  CheckpointTest() : guard(c10::cuda::getStreamFromPool()), other(c10::cuda::getStreamFromPool()) {
    while (other == guard.current_stream()) other = c10::cuda::getStreamFromPool();
  }

  static at::Tensor bytes(std::int64_t count) {
    return at::empty({count}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
  }
  at::Tensor in_pool(std::int64_t count, int value) const {
    const AllocationScope scope(pool);
    return bytes(count).fill_(value);
  }
  static bool holds(const at::Tensor& tensor, int value) {
    return tensor.eq(value).all().item<bool>();
  }
  static std::vector<c10::Storage> roots(
      std::initializer_list<const std::vector<at::Tensor>*> sets) {
    std::vector<c10::Storage> result;
    for (const auto* const set : sets)
      for (const at::Tensor& tensor : *set) result.push_back(tensor.storage());
    return result;
  }
  Checkpoint checkpoint(std::initializer_list<const std::vector<at::Tensor>*> sets) const {
    settle(pool);
    return take_checkpoint(pool, roots(sets));
  }
  Picture picture(std::initializer_list<const std::vector<at::Tensor>*> sets) const {
    Picture result{topology_of(pool), {}};
    for (const c10::Storage& root : roots(sets)) result.owners.push_back(ownership(root));
    return result;
  }
  static void expect_all(const std::vector<at::Tensor>& tensors,
                         bool (*predicate)(const c10::Storage&)) {
    for (const at::Tensor& tensor : tensors) EXPECT_TRUE(predicate(tensor.storage()));
  }

  PrivatePool pool;
  c10::cuda::CUDAStreamGuard guard;
  c10::cuda::CUDAStream other;
};

// A pool with two checkpoints behind it: PRE has `kept`, POST `kept` and `post_only`. Now it is at
// CURRENT: `kept` and `fresh`, which took the places of `post_only`.
struct BranchTest : CheckpointTest {
  BranchTest() {
    int value = 1;
    for (const std::int64_t size : {1, 512, 70'000, 3 << 20, 12 << 20})
      kept.push_back(in_pool(size, value++));
    kept.erase(kept.begin() + 2);  // a hole
    pre = checkpoint({&kept});
    for (const std::int64_t size : {700, 600 << 10, 2 << 20}) post_only.push_back(in_pool(size, 8));
    post = checkpoint({&kept, &post_only});
    post_topology = topology_of(pool);
    switch_pool(pool, post, pre, "rewind");
    for (const std::int64_t size : {900, 4 << 20, 13 << 20}) fresh.push_back(in_pool(size, 9));
    current = checkpoint({&kept, &fresh});
    before = picture({&kept, &post_only, &fresh});
  }

  Picture now() const { return picture({&kept, &post_only, &fresh}); }
  void advance() const { switch_pool(pool, current, post, "branch 1"); }

  void expect_untouched() const { EXPECT_TRUE(now() == before); }
  // A block's bytes are its own again: what is written after a switch stays.
  void expect_writable(const std::vector<at::Tensor>& tensors) const {
    int value = 20;
    for (const at::Tensor& tensor : tensors) tensor.fill_(value++);
    value = 20;
    for (const at::Tensor& tensor : tensors) EXPECT_TRUE(holds(tensor, value++));
  }
  void expect_advances() {
    advance();
    EXPECT_TRUE(grew_only_free(post_topology, topology_of(pool)));
    EXPECT_EQ(topology_of(pool).live(), post.live);
    expect_all(kept, owned);
    expect_all(post_only, owned);
    expect_all(fresh, detached);
  }
  // The switch fails with exactly this exception, all is as before, and then it succeeds.
  void expect_rolled_back(const std::string& rule) {
    expect_failure(rule);
    expect_untouched();
  }
  void expect_failure(const std::string& rule) const {
    try {
      advance();
      ADD_FAILURE() << "no exception";
    } catch (const Injected& injected) {
      EXPECT_EQ(rule, "injected");
    } catch (const Error& error) {
      EXPECT_EQ(error.rule(), rule) << error.what();
    } catch (const c10::Error& error) {
      EXPECT_EQ(rule, "allocator") << error.what();
    }
  }

  std::vector<at::Tensor> kept, post_only, fresh;
  Checkpoint pre, post, current;
  PoolTopology post_topology;
  Picture before;
};

std::string rule_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.rule();
  }
  return "none";
}

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
  EXPECT_EQ(rule_of([&] { take_checkpoint(pool, {first, second}); }), "K09");
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
  EXPECT_EQ(rule_of([&] { take_checkpoint(pool, {first, second}); }), "K09");
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

// A block that is freed while queued work of another stream uses it.
struct PendingTest : BranchTest {
  void use_on_other_stream(const at::Tensor& tensor) const {
    const c10::cuda::CUDAStreamGuard on_other(other);
    tensor.fill_(9);
    caching::get()->recordStream(tensor.storage().data_ptr(), other);
  }
};

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
    EXPECT_EQ(rule_of([&] { settle(pool); }), "K09");
  }
  EXPECT_TRUE(now() == before);
  // Row 1: no checkpoint while events are outstanding.
  EXPECT_THROW(take_checkpoint(pool, roots({&kept, &fresh})), c10::Error);
  EXPECT_THROW(switch_pool(pool, post, pre, "early"), c10::Error);
  EXPECT_TRUE(now() == before);
}

TEST_F(PendingTest, ABlockThatAnotherStreamUsedIsSwitched) {
  use_on_other_stream(fresh[1]);
  use_on_other_stream(kept[3]);
  expect_advances();
}

// Row 3, and a free that becomes pending half way: the rollback must wait for the device too.
TEST_F(PendingTest, BlocksThatAnotherStreamUsedAreRolledBack) {
  for (int k = 1; k <= 7; ++k) {
    for (const at::Tensor& tensor : fresh) use_on_other_stream(tensor);
    FaultyAllocator faulty;
    faulty.before_delete = throw_at(k);
    expect_rolled_back("injected");
  }
  expect_advances();
}

TEST_F(BranchTest, ACurrentThatIsNotWhatThePoolHoldsIsRefusedUntouched) {
  const auto refused = [&](const std::function<void(Checkpoint&)>& spoil) {
    Checkpoint spoilt = current;
    spoil(spoilt);
    EXPECT_EQ(rule_of([&] { switch_pool(pool, spoilt, post, "bad"); }), "S1");
    expect_untouched();
  };
  const void* const address = current.live.begin()->first;
  // Row 2: an owner is missing, moved or detached.
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
  EXPECT_EQ(rule_of([&] { switch_pool(pool, post, pre, "twice"); }), "S1");
  expect_untouched();
}

TEST_F(BranchTest, ATargetThatCannotTakeItsBlocksIsRefusedUntouched) {
  const auto refused = [&](const std::function<void(Checkpoint&)>& spoil) {
    Checkpoint spoilt = post;
    spoil(spoilt);
    EXPECT_EQ(rule_of([&] { switch_pool(pool, current, spoilt, "bad"); }), "S1");
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
      FaultyAllocator faulty;  // rows 3 and 3b: the storage has given the block up by then
      faulty.before_delete = throw_at(k);
      expect_rolled_back("injected");
    }
    FaultyAllocator faulty;  // row 5
    faulty.after_delete = throw_at(k);
    expect_rolled_back("injected");
  }
  expect_advances();
}

// Row 6.
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
    FaultyAllocator faulty;  // row 10
    faulty.before_set = throw_at(1);
    expect_rolled_back("injected");
  }
  {
    FaultyAllocator faulty;  // row 11
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

// Row 10 from a real cause: the allocator does not take the state.
TEST_F(BranchTest, ATargetWithoutStateIsRolledBack) {
  const auto state = std::exchange(post.state, nullptr);
  expect_rolled_back("allocator");
  post.state = state;
  expect_advances();
}

// Row 12b: a block does not come back.
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

// Row 14. The rollback frees the block, so nobody may own it.
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

// Row 9. The stray stays its own storage's, and works.
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

// Row 12a: blocks that the allocator meets in the pool become pending, so it finds their segments
// occupied after it has freed everything.
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

using CheckpointDeathTest = PendingTest;

// Row 17, and the text.
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

// Row 8: with a scope open, which is forbidden, freed blocks wait for ever.
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
}  // namespace slotgraph

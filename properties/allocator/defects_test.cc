// Where libtorch 2.11's allocator is wrong, or surprises: what the model has to repeat
// (model.cc) or to keep out of its programs (model_limits.cc). A test that fails here says that
// upstream has changed, and that the model must follow.
#include <c10/cuda/CUDAException.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "properties/allocator/real.h"

namespace slotgraph::allocator {
namespace {

using Outcome = Reply::Outcome;
constexpr Stream kMain{0, 0}, kSide{0, 1}, kOtherMain{1, 0};

struct Defects : ::testing::Test {
  static void SetUpTestSuite() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    initialise_two_devices();
  }
  Address allocate(std::size_t bytes, Stream stream = kMain) {
    const Reply reply = real.allocate(stream, bytes);
    EXPECT_EQ(reply.outcome, Outcome::kDone);
    return reply.allocated.empty() ? 0 : reply.allocated[0];
  }
  int use_count(int pool) { return real.states()[0].use_counts.at(pool); }
  std::int64_t statistic(const char* name) { return real.states()[0].statistics.at(name); }

  Real real;
};

// What recordStream is for.
TEST_F(Defects, NoneIfAnotherStreamIsRecorded) {
  const Address block = allocate(4096);
  real.record_stream(block, kSide);
  real.free(block);
  EXPECT_NE(allocate(4096), block) << "the side stream has not come to the event";
  real.mark(kSide);
  real.wait(0);
  EXPECT_EQ(allocate(4096), block);
}

// recordStream compares raw handles, and the default stream of every device has the handle null:
// a tensor of device 0's default stream that device 1's default stream uses is handed out again at
// once. No public report found.
TEST_F(Defects, UsesOnAnotherDefaultStreamAreIgnored) {
  const Address block = allocate(4096);
  real.record_stream(block, kOtherMain);
  real.free(block);
  EXPECT_EQ(allocate(4096), block);
}

// Streams that were recorded while a scope was open are forgotten when the scope ends, because a
// capture has joined them by then: also a stream that had been recorded before, for work outside.
// https://github.com/pytorch/pytorch/pull/126809 brought it.
TEST_F(Defects, ARecordInAScopeHidesAnEarlierOneOutside) {
  const Address block = allocate(4096);
  real.record_stream(block, kSide);
  real.begin_scope(0, 1, {});
  real.record_stream(block, kSide);
  real.free(block);
  real.end_scope(0, 1);
  EXPECT_EQ(allocate(4096), block);
}

// The same table is keyed by the allocator's block object, and an entry dies only with a block that
// is freed inside a scope: the object's next life inherits it.
TEST_F(Defects, AScopesRecordOutlivesItsBlock) {
  constexpr std::size_t kBytes = 12 * kMiB;  // a segment of its own, so that one object stays
  const Address block = allocate(kBytes);
  real.begin_scope(0, 1, {});
  real.record_stream(block, kSide);
  real.end_scope(0, 1);
  real.free(block);
  real.mark(kSide);
  real.wait(0);
  ASSERT_EQ(allocate(kBytes), block);

  real.record_stream(block, kSide);
  real.begin_scope(0, 1, {});
  real.free(block);
  real.end_scope(0, 1);
  EXPECT_EQ(allocate(kBytes), block) << "nothing has been waited for";
}

// Blocks with uses that die in a scope come back with the next allocation outside, not at the end
// of the scope: https://github.com/pytorch/pytorch/pull/175817, after 2.11.
TEST_F(Defects, BlocksOfAScopeComeBackWithTheNextAllocationOutside) {
  real.begin_scope(0, 1, {});
  const Address block = allocate(4096);
  real.record_stream(block, kSide);
  real.free(block);
  real.end_scope(0, 1);
  EXPECT_EQ(statistic("active all"), 1);
  real.begin_scope(0, 1, {});
  EXPECT_NE(allocate(4096), block);
  real.end_scope(0, 1);
  allocate(4096);
  EXPECT_EQ(statistic("active all"), 2);
}

// getCheckpointState flushes them even while the scope is open: the side stream may still use the
// block when the same capture gets it again.
TEST_F(Defects, ACheckpointInAScopeFreesBlocksThatWait) {
  real.begin_scope(0, 1, {});
  const Address block = allocate(4096);
  real.record_stream(block, kSide);
  real.free(block);
  ASSERT_NE(allocate(4096), block);
  real.take_checkpoint(0, 1);
  EXPECT_EQ(allocate(4096), block);
}

// The use count is raised before the second scope is refused, so the pool never dies:
// https://github.com/pytorch/pytorch/pull/133600,
// https://github.com/NVIDIA/TensorRT-LLM/pull/18317.
TEST_F(Defects, ARefusedScopeKeepsAUseCount) {
  real.begin_scope(0, 1, {.thread = 0});
  EXPECT_EQ(real.begin_scope(0, 1, {.thread = 1}).outcome, Outcome::kRefused);
  EXPECT_EQ(use_count(1), 2);
}

// https://github.com/pytorch/pytorch/issues/189126,
// https://github.com/vllm-project/vllm/issues/28426: the pool's identifier is used after its last
// holder has gone.
TEST_F(Defects, APoolWithoutHoldersRefusesScopes) {
  real.begin_scope(0, 1, {});
  const Address block = allocate(4096);
  real.end_scope(0, 1);
  real.release(0, 1);
  EXPECT_EQ(real.begin_scope(0, 1, {}).outcome, Outcome::kRefused);
  EXPECT_EQ(real.retain(0, 1).outcome, Outcome::kRefused);
  real.free(block);
  real.empty_cache(0);
  EXPECT_EQ(real.begin_scope(0, 1, {}).outcome, Outcome::kDone) << "the pool is gone";
}

// A pool may go while its scope is open; then every allocation of the scope asserts.
TEST_F(Defects, AScopeOutlivesItsPool) {
  real.begin_scope(0, 1, {});
  real.release(0, 1);
  real.empty_cache(0);
  EXPECT_EQ(real.allocate(kMain, 512).outcome, Outcome::kRefused);
}

// emptyCache of one pool asserts that no scope of the device is open, whatever its pool. ~MemPool
// calls it, so the process ends there.
TEST_F(Defects, APoolCannotBeEmptiedWhileAScopeIsOpen) {
  real.retain(0, 1);
  real.release(0, 1);
  real.begin_scope(0, 2, {});
  EXPECT_EQ(real.empty_cache(1).outcome, Outcome::kRefused);
  real.end_scope(0, 2);
  EXPECT_EQ(real.empty_cache(1).outcome, Outcome::kDone);
}

// A checkpoint of a pool that restore will refuse.
TEST_F(Defects, APoolWithoutHoldersHasCheckpoints) {
  real.retain(0, 1);
  real.release(0, 1);
  EXPECT_EQ(real.take_checkpoint(0, 1).outcome, Outcome::kDone);
  EXPECT_EQ(real.restore(0).outcome, Outcome::kRefused);
}

// What was asked for is not part of a checkpoint: the statistic drifts.
TEST_F(Defects, ARestoreForgetsTheRequestedBytes) {
  real.begin_scope(0, 1, {});
  allocate(100);
  real.take_checkpoint(0, 1);
  EXPECT_EQ(statistic("requested bytes all"), 100);
  real.restore(0);
  EXPECT_EQ(statistic("requested bytes all"), 512);
}

// https://github.com/pytorch/pytorch/issues/159674: cached memory is of no use to a scope.
TEST_F(Defects, NoMemoryInAScopeAlthoughMuchIsCached) {
  real.free(allocate(60 * kMiB));
  real.begin_scope(0, 1, {});
  EXPECT_EQ(real.allocate(kMain, 60 * kMiB).outcome, Outcome::kOutOfMemory);
  real.end_scope(0, 1);
  EXPECT_EQ(real.allocate(kSide, 60 * kMiB).outcome, Outcome::kDone);
}

// A tensor of the default pool that lives in a pool which opted in (use_on_oom,
// https://github.com/pytorch/pytorch/pull/151487) dies in the pool's restore, under its owner.
TEST_F(Defects, ARestoreFreesWhatTheDefaultPoolBorrowed) {
  real.begin_scope(0, 1, {});
  const Address block = allocate(60 * kMiB);
  real.free(block);
  real.end_scope(0, 1);
  real.take_checkpoint(0, 1);
  real.use_on_oom(0, 1, true);
  ASSERT_EQ(allocate(60 * kMiB), block);
  EXPECT_EQ(real.restore(0).freed, std::vector<Address>{block});
}

// The search opens a scope of the pool, which an open one refuses: the request fails with that
// error although emptying the cache would have served it, and the pool has one use count more.
TEST_F(Defects, APoolThatIsInUseCannotRescue) {
  real.free(allocate(60 * kMiB, kSide));
  real.begin_scope(0, 1, {.thread = 1});
  real.use_on_oom(0, 1, true);
  EXPECT_EQ(real.allocate(kMain, 60 * kMiB).outcome, Outcome::kRefused);
  EXPECT_EQ(use_count(1), 2);
}

using DefectsDeathTest = Defects;

// The count becomes negative before the assertion, and from then on nobody can empty the cache.
TEST_F(DefectsDeathTest, AReleaseTooManySpoilsEmptyCache) {
  const auto scenario = [this] {
    real.retain(0, 1);
    real.release(0, 1);
    const bool refused = real.release(0, 1).outcome == Outcome::kRefused;
    std::_Exit(refused && real.empty_cache(0).outcome == Outcome::kRefused ? 0 : 1);
  };
  EXPECT_EXIT(scenario(), ::testing::ExitedWithCode(0), "");
}

// A block that was split under larger limits passes for a whole segment once max_split_size is
// lowered below it: it is given to cudaFree, with the live blocks behind it.
TEST_F(DefectsDeathTest, ALoweredMaxSplitSizeFreesLiveNeighbours) {
  const auto scenario = [this] {
    const Address first = allocate(80 * kMiB);
    real.free(first);
    allocate(40 * kMiB);
    const Address neighbour = allocate(30 * kMiB);
    cudaPointerAttributes attributes{};
    (void)cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(neighbour));
    if (attributes.type != cudaMemoryTypeDevice) std::_Exit(2);
    real.free(first);
    real.configure({.max_split_bytes = 32 * kMiB});
    allocate(20 * kMiB);
    (void)cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(neighbour));
    std::_Exit(attributes.type == cudaMemoryTypeUnregistered ? 0 : 1);
  };
  EXPECT_EXIT(scenario(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace slotgraph::allocator

// Public reports (../public_bugs.csv) about the allocator's pools and checkpoints that are not
// defects of 2.11 (defects_test.cc): generators over what each report had once.
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/device/device.h"
#include "core/memory/allocator_config.h"
#include "core/memory/forwarding_allocator.h"
#include "properties/allocator/real.h"

namespace slotgraph::allocator {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using Outcome = Reply::Outcome;
constexpr Stream kMain{0, 0}, kSide{0, 1};

struct PublicBugs : ::testing::Test {
  static void SetUpTestSuite() { initialise_two_devices(); }
};

std::size_t reserved(Real& real) {
  return static_cast<std::size_t>(real.states()[0].statistics.at("reserved bytes all"));
}
std::size_t live(Real& real) {
  return static_cast<std::size_t>(real.states()[0].statistics.at("allocated bytes all"));
}

// 2: a tensor born after the checkpoint frees, when it dies after the restore, what is no longer
// its own. Whoever restores must disarm its deleter.
// https://github.com/pytorch/pytorch/pull/94943
TEST_F(PublicBugs, ATensorBornAfterTheCheckpointMustBeDisarmed) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, 3 * kMiB, 30 * kMiB}) {
    for (const bool disarmed : {true, false}) {
      Real real;  // gives back everything in the end
      const c10::MempoolId_t pool{0, c10::CaptureId_t{1} << 50};
      const auto allocate = [&] {
        caching::beginAllocateToPool(0, pool, [](cudaStream_t) { return true; });
        at::DataPtr block = caching::get()->allocate(bytes);
        caching::endAllocateToPool(0, pool);
        caching::releasePool(0, pool);
        return block;
      };
      caching::get()->createOrIncrefPool(0, pool);
      const auto state = caching::getCheckpointState(0, pool);
      at::DataPtr x = allocate();
      caching::setCheckpointPoolState(0, state);
      at::DataPtr y = allocate();
      ASSERT_EQ(x.get(), y.get());
      if (disarmed) x.release_context();
      x.clear();
      EXPECT_EQ(live(real) > 0, disarmed) << "y lives, if nobody freed it";
      if (!disarmed) y.release_context();
      y.clear();
      caching::releasePool(0, pool);
    }
  }
}

// 3: blocks that a restore brings back belong to the caller, each once.
// https://github.com/pytorch/pytorch/pull/95020
TEST_F(PublicBugs, BlocksThatARestoreBringsBackHaveOneOwner) {
  for (int dropped = 0; dropped < 16; ++dropped) {
    Real real;
    real.begin_scope(0, 1, {});
    std::vector<Address> blocks;
    for (const std::size_t bytes : {std::size_t{512}, std::size_t{4096}, 2 * kMiB, 12 * kMiB})
      blocks.push_back(real.allocate(kMain, bytes).allocated.at(0));
    real.end_scope(0, 1);
    real.take_checkpoint(0, 1);
    const std::size_t before = live(real);
    std::vector<Address> kept;
    for (std::size_t i = 0; i < blocks.size(); ++i)
      (dropped >> i) & 1 ? (void)real.free(blocks[i]) : kept.push_back(blocks[i]);
    const Reply reply = real.restore(0);
    std::sort(kept.begin(), kept.end());
    std::sort(blocks.begin(), blocks.end());
    EXPECT_EQ(reply.freed, kept);
    EXPECT_EQ(reply.allocated, blocks);
    EXPECT_EQ(live(real), before);
    for (const Address block : blocks) EXPECT_EQ(real.free(block).outcome, Outcome::kDone);
    EXPECT_EQ(live(real), 0u);
  }
}

// 4: a checkpoint while another thread allocates, records streams and frees in the pool asserted on
// the chain of blocks. Here after each of its calls, in every order of three frees: refused while a
// block waits for another stream (settle() in core/memory/checkpoint.h waits first), else right.
// https://github.com/pytorch/pytorch/issues/133316
TEST_F(PublicBugs, CheckpointsBetweenTheCallsOfAnotherThread) {
  for (const std::size_t bytes : {std::size_t{512}, std::size_t{700'000}, 3 * kMiB}) {
    for (int recorded = 0; recorded < 8; ++recorded) {
      std::vector<int> order{0, 1, 2};
      do {
        Real real;
        real.retain(0, 1);
        int checkpoints = 0;
        bool waiting = false;
        const auto check = [&] {
          real.switch_to(0);
          const DeviceStates before = real.states();
          EXPECT_EQ(real.take_checkpoint(0, 1).outcome,
                    waiting ? Outcome::kRefused : Outcome::kDone);
          checkpoints += !waiting;
          EXPECT_EQ(difference(before, real.states()), "");
          real.switch_to(1);
        };
        real.switch_to(1);
        real.begin_scope(0, 1, {.thread = 1});
        std::vector<Address> blocks;
        for (int i = 0; i < 3; ++i) {
          blocks.push_back(real.allocate(kMain, bytes).allocated.at(0));
          check();
        }
        real.end_scope(0, 1);
        for (int i = 0; i < 3; ++i) {
          if ((recorded >> i) & 1) real.record_stream(blocks[i], kSide);
          check();
        }
        for (const int i : order) {
          real.free(blocks[i]);
          waiting = waiting || ((recorded >> i) & 1);
          check();
        }
        real.mark(kSide);
        real.wait(0);
        real.free(real.allocate(kMain, 512).allocated.at(0));  // sees what has been waited for
        waiting = false;
        check();
        for (int i = 0; i < checkpoints; ++i) EXPECT_EQ(real.restore(i).outcome, Outcome::kDone);
      } while (std::next_permutation(order.begin(), order.end()));
    }
  }
}

// 8: restoring failed on the chain of blocks, in the second run only, with other graphs' captures
// in between. https://github.com/pytorch/pytorch/issues/140419
TEST_F(PublicBugs, AnotherPoolsWorkBetweenCheckpointAndRestoreChangesNothing) {
  for (int program = 0; program < 64; ++program) {
    Real real;
    const auto in_pool = [&](int pool, std::size_t bytes) {
      real.begin_scope(0, pool, {});
      const Address block = real.allocate(kMain, bytes).allocated.at(0);
      real.end_scope(0, pool);
      return block;
    };
    const std::size_t sizes[] = {512, 900'000, 3 * kMiB};
    std::vector<Address> own;
    for (const std::size_t bytes : sizes) own.push_back(in_pool(1, bytes));
    real.take_checkpoint(0, 1);
    const auto segments_of = [&](int pool) {
      std::vector<DeviceState::Segment> result;
      const DeviceStates seen = real.states();
      for (const auto& segment : seen[0].segments)
        if (segment.pool == pool) result.push_back(segment);
      return result;
    };
    std::vector<Address> others;
    for (int run = 0; run < 2; ++run) {
      for (int bit = 0; bit < 6; ++bit) {
        const bool other = (program >> bit) & 1;
        const Address block = in_pool(other ? 2 : 1, sizes[(bit + run) % 3]);
        if (other) others.push_back(block);
        if (other && bit % 2 == 1) {
          real.free(others.front());
          others.erase(others.begin());
        }
      }
      const auto before = segments_of(2);
      const Reply reply = real.restore(0);
      EXPECT_EQ(reply.outcome, Outcome::kDone);
      std::sort(own.begin(), own.end());
      EXPECT_EQ(reply.allocated, own) << "program " << program << ", run " << run;
      EXPECT_EQ(segments_of(2), before);
    }
  }
}

// 23: several runners share one pool's handle, and capture and die at random. A capture is refused
// exactly if no holder is left and the pool still has memory.
// https://github.com/huggingface/transformers/issues/48312
TEST_F(PublicBugs, RunnersOfOnePoolFailOnlyWithoutAHolder) {
  int refused = 0;
  for (const bool holder : {true, false}) {
    for (int program = 0; program < 729; ++program) {
      Real real;
      if (holder) real.retain(0, 1);
      int graphs = 0;
      bool memory = false;
      for (int step = 0, code = program; step < 6; ++step, code /= 3) {
        if (code % 3 == 0) {
          const bool expected = holder || graphs > 0 || !memory;
          const Outcome found = real.begin_scope(0, 1, {}).outcome;
          EXPECT_EQ(found == Outcome::kDone, expected) << "program " << program;
          refused += found == Outcome::kRefused;
          if (found != Outcome::kDone) continue;
          real.free(real.allocate(kMain, 4096).allocated.at(0));
          real.end_scope(0, 1);
          ++graphs;
          memory = true;
        } else if (code % 3 == 1 && graphs > 0) {
          real.release(0, 1);
          --graphs;
        } else if (code % 3 == 2) {
          real.empty_cache(0);
          if (graphs == 0 && !holder) memory = false;
        }
      }
      for (; graphs > 0; --graphs) real.release(0, 1);
    }
  }
  EXPECT_GT(refused, 0);
}

// 24: segments that are given back for want of memory, above max_split_size, did not lower the
// pool's count, and it never died. https://github.com/pytorch/pytorch/pull/61567
TEST_F(PublicBugs, APoolDiesWhenItsOversizeSegmentsHaveBeenEvicted) {
  struct Case {
    std::vector<std::size_t> evicted;
    std::size_t wanted;
  };
  // One that is too large to be cut, and two of which none is large enough.
  for (const Case& c : {Case{{70 * kMiB}, 40 * kMiB}, Case{{44 * kMiB, 46 * kMiB}, 80 * kMiB}}) {
    for (const bool release_first : {true, false}) {
      Real real;
      real.configure({.max_split_bytes = 21 * kMiB});
      real.begin_scope(0, 1, {});
      std::vector<Address> blocks;
      for (const std::size_t bytes : c.evicted)
        blocks.push_back(real.allocate(kMain, bytes).allocated.at(0));
      for (const Address block : blocks) real.free(block);
      const Reply large = real.allocate(kMain, c.wanted);
      real.end_scope(0, 1);
      ASSERT_EQ(large.outcome, Outcome::kDone);
      EXPECT_EQ(real.states()[0].segments.size(), 1u) << "the others were evicted";
      if (release_first) real.release(0, 1);
      real.free(large.allocated.at(0));
      if (!release_first) real.release(0, 1);
      EXPECT_EQ(real.begin_scope(0, 1, {}).outcome, Outcome::kRefused) << "it waits for its end";
      real.empty_cache(0);
      EXPECT_EQ(reserved(real), 0u);
      EXPECT_EQ(real.states()[0].use_counts.size(), 0u) << "no pool is left";
      EXPECT_EQ(real.begin_scope(0, 1, {}).outcome, Outcome::kDone) << "a new one";
      real.end_scope(0, 1);
    }
  }
}

// 21: where the memory of a pool is after each step of its end: blocks that are freed stay in the
// pool; segments go back when it has no holder, at the next emptyCache.
// https://github.com/pytorch/pytorch/issues/167745
TEST_F(PublicBugs, SegmentsComeBackAfterTheLastHolderAndTheNextEmptyCache) {
  enum Step { kFree, kRelease, kEmpty };
  std::vector<Step> steps{kFree, kRelease, kEmpty, kEmpty};
  do {
    for (const std::size_t bytes : {std::size_t{512}, 3 * kMiB, 30 * kMiB}) {
      Real real;
      real.begin_scope(0, 1, {});
      const Address block = real.allocate(kMain, bytes).allocated.at(0);
      real.end_scope(0, 1);
      const std::size_t whole = reserved(real);
      bool freed = false, released = false, back = false;
      for (const Step step : steps) {
        if (step == kFree) real.free(block);
        if (step == kRelease) real.release(0, 1);
        if (step == kEmpty) real.empty_cache(0);
        freed = freed || step == kFree;
        released = released || step == kRelease;
        back = back || (freed && released && step == kEmpty);
        EXPECT_EQ(reserved(real), back ? 0 : whole);
        EXPECT_EQ(live(real) == 0, freed);
      }
    }
  } while (std::next_permutation(steps.begin(), steps.end()));
}

// The backend of a custom pool: the device's own calls, noted.
struct Backend : ForwardingAllocator {
  Backend() : ForwardingAllocator(caching::get()) {}
  void* raw_alloc(std::size_t bytes) override {
    void* block = nullptr;
    C10_CUDA_CHECK(cudaMalloc(&block, bytes));
    held.insert(block);
    return block;
  }
  void raw_delete(void* block) override {
    foreign += held.erase(block) == 0;
    C10_CUDA_CHECK(cudaFree(block));
  }
  std::set<void*> held;
  int foreign = 0;  // blocks of others that were given to it
};

struct CustomPool {
  explicit CustomPool(unsigned number) : id{0, (c10::CaptureId_t{1} << 51) + number} {
    caching::get()->createOrIncrefPool(0, id, backend);
  }
  void release() {
    caching::releasePool(0, id);
    caching::get()->emptyCache(id);
  }
  void enter() {
    caching::beginAllocateToPool(0, id, [](cudaStream_t) { return true; });
  }
  void leave() {
    caching::endAllocateToPool(0, id);
    caching::releasePool(0, id);
  }
  c10::MempoolId_t id;
  std::shared_ptr<Backend> backend = std::make_shared<Backend>();
};

// 17: a tensor that outlives its pool's context was released by the backend of the context that was
// open then. https://github.com/pytorch/pytorch/issues/146431
TEST_F(PublicBugs, ASegmentIsFreedByTheBackendOfItsOwnPool) {
  enum class Where { kOutside, kInOther, kInOwn };
  for (const Where where : {Where::kOutside, Where::kInOther, Where::kInOwn}) {
    for (const bool pool_dies_first : {true, false}) {
      for (const std::size_t bytes : {std::size_t{512}, 3 * kMiB, 30 * kMiB}) {
        static unsigned number = 0;
        Real real;
        CustomPool p(++number), q(++number);
        p.enter();
        at::DataPtr block = caching::get()->allocate(bytes);
        p.leave();
        EXPECT_EQ(p.backend->held.size(), 1u);
        if (where == Where::kInOther) q.enter();
        if (where == Where::kInOwn) p.enter();
        if (!pool_dies_first) block.clear();
        if (where == Where::kOutside) p.release();
        block.clear();
        if (where == Where::kInOther) q.leave();
        if (where == Where::kInOwn) p.leave();
        if (where != Where::kOutside) p.release();
        caching::emptyCache();
        EXPECT_TRUE(p.backend->held.empty());
        q.release();
        EXPECT_EQ(p.backend->foreign + q.backend->foreign, 0);
        EXPECT_TRUE(q.backend->held.empty());
      }
    }
  }
}

// 26: expandable segments do not apply to pools with a backend of their own: what a process can do
// must be asked of each segment, not of the settings.
// https://github.com/pytorch/pytorch/issues/147851
TEST_F(PublicBugs, ACustomPoolHasNoExpandableSegments) {
  for (const bool expandable : {true, false}) {
    Real real;
    CustomPool pool(expandable ? 1001 : 1002);
    set_allocator_config(expandable ? "expandable_segments:True"
                                                           : "expandable_segments:False");
    pool.enter();
    at::DataPtr block = caching::get()->allocate(3 * kMiB);
    pool.leave();
    set_allocator_config("expandable_segments:False");
    int found = 0;
    for (const auto& segment : caching::get()->snapshot({0, 0}, false).segments) {
      if (segment.owner_private_pool_id != pool.id) continue;
      EXPECT_FALSE(segment.is_expandable);
      ++found;
    }
    EXPECT_EQ(found, 1);
    EXPECT_EQ(pool.backend->held.size(), 1u);
    block.clear();
    pool.release();
    EXPECT_TRUE(pool.backend->held.empty());
  }
}

}  // namespace
}  // namespace slotgraph::allocator

// What the tests of checkpoints share: branches of a pool, their ownership, and an allocator that
// fails.
#ifndef CORE_MEMORY_CHECKPOINT_FIXTURE_H_
#define CORE_MEMORY_CHECKPOINT_FIXTURE_H_

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/device/device.h"
#include "core/memory/checkpoint.h"
#include "core/memory/forwarding_allocator.h"
#include "core/testing/rule.h"

namespace slotgraph::checkpoint_fixture {

using testing::rule;
namespace caching = c10::cuda::CUDACachingAllocator;

// Whether `later` differs by added segments only that are wholly free.
inline bool grew_only_free(const PoolTopology& earlier, const PoolTopology& later) {
  PoolTopology kept = later;
  std::erase_if(kept.segments, [&](const PoolTopology::Segment& segment) {
    const bool known = std::any_of(earlier.segments.begin(), earlier.segments.end(),
                                   [&](const auto& e) { return e.address == segment.address; });
    return !known && segment.free();
  });
  return kept == earlier;
}

// What a rollback must give back to one storage.
struct Ownership {
  const void* storage;
  const void* address;
  const void* context;
  c10::DeleterFnPtr deleter;
  bool operator==(const Ownership&) const = default;
};

inline Ownership ownership(const c10::Storage& s) {
  return {s.unsafeGetStorageImpl(), s.data(), s.data_ptr().get_context(),
          s.data_ptr().get_deleter()};
}

inline bool owned(const c10::Storage& s) {
  return s.data() && s.data_ptr().get_context() == s.data() &&
         s.data_ptr().get_deleter() == caching::get()->raw_deleter();
}

inline bool detached(const c10::Storage& s) {
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

inline FaultyAllocator::Hook throw_at(int k) {
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

// A block that is freed while queued work of another stream uses it.
struct PendingTest : BranchTest {
  void use_on_other_stream(const at::Tensor& tensor) const {
    const c10::cuda::CUDAStreamGuard on_other(other);
    tensor.fill_(9);
    caching::get()->recordStream(tensor.storage().data_ptr(), other);
  }
};

}  // namespace slotgraph::checkpoint_fixture

#endif  // CORE_MEMORY_CHECKPOINT_FIXTURE_H_

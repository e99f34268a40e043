// Missing order between streams shows up as a wrong value, and correct programs are right in every
// order.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "core/device/host/test_support.h"

namespace slotgraph::device {
namespace {

constexpr int kSeeds = 1000;
constexpr std::int64_t kElements = 256;

at::Tensor on_device(double value) { return at::full({kElements}, value, at::kCUDA); }

// What all elements are, if they are equal; NaN counts as no value.
std::optional<float> common_value(const at::Tensor& tensor) {
  const at::Tensor host = tensor.to(at::kCPU);
  const float first = host.data_ptr<float>()[0];
  for (std::int64_t i = 0; i < host.numel(); ++i) {
    if (host.data_ptr<float>()[i] != first) return std::nullopt;
  }
  return first;
}

struct Event {
  Event() { C10_CUDA_CHECK(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming)); }
  ~Event() { (void)cudaEventDestroy(handle); }
  void record(c10::cuda::CUDAStream stream) { C10_CUDA_CHECK(cudaEventRecord(handle, stream)); }
  void block(c10::cuda::CUDAStream stream) { C10_CUDA_CHECK(cudaStreamWaitEvent(stream, handle)); }
  cudaEvent_t handle = nullptr;
};

struct StreamOrder : ::testing::Test {
  static void SetUpTestSuite() { initialise(); }
  c10::cuda::CUDAStream main = c10::cuda::getDefaultCUDAStream();
  c10::cuda::CUDAStream side = c10::cuda::getStreamFromPool();

  // Seeds in [1, kSeeds] for which the program does not give `right`.
  int wrong_seeds(const std::function<at::Tensor()>& program, float right) {
    int wrong = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      const ScopedSimulation simulation({.order_seed = static_cast<std::uint64_t>(seed)});
      const at::Tensor result = program();
      synchronise();
      if (common_value(result) != right) ++wrong;
    }
    return wrong;
  }

  // A tensor of the main stream is read on the side stream, dies, and its block is used again.
  at::Tensor read_dying_tensor(bool record) {
    at::Tensor x = on_device(1);
    synchronise();
    at::Tensor read;
    {
      const c10::cuda::CUDAStreamGuard guard(side);
      read = x + 1;
    }
    if (record) x.record_stream(side);
    const void* const block = x.const_data_ptr();
    x = at::Tensor();
    const at::Tensor next = on_device(7);
    reused = next.const_data_ptr() == block;
    return read;
  }
  bool reused = false;

  // The side stream writes what the main stream reads.
  at::Tensor read_across_streams(bool wait) {
    at::Tensor x = on_device(0);
    synchronise();
    Event written;
    {
      const c10::cuda::CUDAStreamGuard guard(side);
      x.fill_(3);
      written.record(side);
    }
    if (wait) written.block(main);
    at::Tensor read = x + 1;
    synchronise();  // x outlives its use on both streams
    return read;
  }
};

TEST_F(StreamOrder, UseAfterFreeShowsUnderSomeSeed) {
  EXPECT_GT(wrong_seeds([&] { return read_dying_tensor(false); }, 2), 0);
  EXPECT_TRUE(reused) << "the case is pointless unless the block is used again";
}

TEST_F(StreamOrder, RecordStreamIsRightUnderEverySeed) {
  EXPECT_EQ(wrong_seeds([&] { return read_dying_tensor(true); }, 2), 0);
}

TEST_F(StreamOrder, MissingEventWaitShowsUnderSomeSeed) {
  EXPECT_GT(wrong_seeds([&] { return read_across_streams(false); }, 4), 0);
}

TEST_F(StreamOrder, EventWaitIsRightUnderEverySeed) {
  EXPECT_EQ(wrong_seeds([&] { return read_across_streams(true); }, 4), 0);
}

TEST_F(StreamOrder, BackAndForthWithEventsIsRightUnderEverySeed) {
  const auto program = [&] {
    at::Tensor x = on_device(1);
    for (int i = 0; i < 3; ++i) {
      Event forth, back;
      forth.record(main);
      forth.block(side);
      {
        const c10::cuda::CUDAStreamGuard guard(side);
        x.mul_(2);
        back.record(side);
      }
      back.block(main);
      x.add_(1);
    }
    return x;
  };
  EXPECT_EQ(wrong_seeds(program, 15), 0);
}

TEST_F(StreamOrder, OneStreamIsRightUnderEverySeed) {
  const auto program = [&] {
    at::Tensor x = on_device(1);
    for (int i = 0; i < 5; ++i) x = x * 2 + 1;  // every step frees the block of the one before
    return x;
  };
  EXPECT_EQ(wrong_seeds(program, 63), 0);
}

TEST_F(StreamOrder, TheSameSeedGivesTheSameOrder) {
  const auto race = [&](std::uint64_t seed) {
    const ScopedSimulation simulation({.order_seed = seed});
    const at::Tensor x = on_device(0);
    synchronise();
    for (int i = 1; i <= 4; ++i) {
      x.mul_(3).add_(i);
      const c10::cuda::CUDAStreamGuard guard(side);
      x.add_(10 * i);
    }
    synchronise();
    return common_value(x);
  };
  int different = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(race(seed), race(seed)) << seed;
    different += race(seed) != race(seed + 1);
  }
  EXPECT_GT(different, 25) << "seeds give different orders";
}

TEST_F(StreamOrder, FreshMemoryHoldsPoison) {
  for (const std::uint8_t poison : {0xFF, 0x00, 0x3F}) {
    const ScopedSimulation simulation({.poison = poison});
    const at::Tensor fresh = at::empty({kElements}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
    const at::Tensor host = fresh.to(at::kCPU);
    for (std::int64_t i = 0; i < kElements; ++i)
      ASSERT_EQ(host.data_ptr<std::uint8_t>()[i], poison) << i;
  }
}

// The last reader is queued when the tensor dies: it must see values, what comes later must not.
TEST_F(StreamOrder, DeadMemoryIsPoisonedInStreamOrder) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const ScopedSimulation simulation({.order_seed = seed});
    at::Tensor x = on_device(1);
    const void* const block = x.const_data_ptr();
    const at::Tensor read = x + 1;
    x = at::Tensor();
    std::vector<float> bytes(kElements);
    C10_CUDA_CHECK(
        cudaMemcpy(bytes.data(), block, kElements * sizeof(float), cudaMemcpyDeviceToHost));
    for (const float value : bytes) ASSERT_TRUE(std::isnan(value)) << seed;
    ASSERT_EQ(common_value(read), 2.0f) << seed;
  }
}

}  // namespace
}  // namespace slotgraph::device

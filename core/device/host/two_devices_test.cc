// Two devices: kernels run where their tensors are, whatever the current device is.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/device/host/test_support.h"
#include "core/emulation/control.h"

namespace slotgraph::device {
namespace {

using ::testing::HasSubstr;

const at::Device kFirst(at::kCUDA, 0), kSecond(at::kCUDA, 1);

at::Tensor filled(at::Device device, double value) {
  return at::full({64}, value, at::TensorOptions(device));
}

int device_of(const void* pointer) {
  cudaPointerAttributes attributes{};
  C10_CUDA_CHECK(cudaPointerGetAttributes(&attributes, pointer));
  return attributes.device;
}

struct TwoDevices : ::testing::Test {
  static void SetUpTestSuite() {
    ASSERT_EQ(slotgraph_emulation_set_device_count(2), 0);
    initialise();
  }
  ~TwoDevices() override { EXPECT_EQ(c10::cuda::current_device(), 0); }
};

TEST_F(TwoDevices, OperatorsRunWhereTheirTensorsAre) {
  const at::Tensor a = filled(kSecond, 2), b = filled(kSecond, 3);
  const at::Tensor sum = a * b + 1;
  EXPECT_EQ(sum.device(), kSecond);
  EXPECT_EQ(device_of(sum.const_data_ptr()), 1);
  EXPECT_EQ(sum.sum().item<float>(), 64 * 7);
  const at::Tensor range = at::arange(5, at::TensorOptions(kSecond).dtype(at::kFloat));
  EXPECT_EQ(device_of(range.const_data_ptr()), 1);
  EXPECT_EQ(range.index_select(0, range.argmax().unsqueeze(0)).item<float>(), 4);
  EXPECT_EQ(device_of(filled(kFirst, 0).const_data_ptr()), 0);
}

// The stream that is current on the tensors' device, not the current device's.
TEST_F(TwoDevices, WorkGoesToTheStreamOfItsDevice) {
  const c10::cuda::CUDAStream side = c10::cuda::getStreamFromPool(false, 1);
  const at::Tensor x = filled(kSecond, 1);
  c10::cuda::getDefaultCUDAStream(1).synchronize();
  const auto before = c10::cuda::getCurrentCUDAStream(1);
  c10::cuda::setCurrentCUDAStream(side);
  const at::Tensor y = x + 1;
  c10::cuda::setCurrentCUDAStream(before);
  EXPECT_FALSE(side.query());
  EXPECT_TRUE(c10::cuda::getDefaultCUDAStream(0).query());
  EXPECT_TRUE(before.query());
  side.synchronize();
}

TEST_F(TwoDevices, OperandsOfTwoDevicesAreRefused) {
  const at::Tensor a = filled(kFirst, 2), b = filled(kSecond, 3);
  EXPECT_THAT(error_of([&] { a + b; }), HasSubstr("Expected all tensors to be on the same device"));
  EXPECT_THAT(error_of([&] { at::cat({a, b}); }), HasSubstr("cuda:0 and cuda:1"));
  EXPECT_EQ((b + at::full({}, 1.0)).sum().item<float>(), 64 * 4) << "a number of the CPU may be";
}

// The copy sees what was queued on either device before it, and nothing that comes after it.
TEST_F(TwoDevices, CopiesAreOrderedOnBothDevicesUnderEverySeed) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const ScopedSimulation simulation({.order_seed = seed});
    const at::Tensor source = filled(kFirst, 1), target = filled(kSecond, 5);
    const at::Tensor old = target + 1;
    source.mul_(2);
    target.copy_(source);
    source.fill_(9);
    const at::Tensor arrived = target + 1;
    target.fill_(8);
    const at::Tensor back = arrived.to(kFirst);
    EXPECT_EQ(back.device(), kFirst);
    ASSERT_EQ(old.sum().item<float>(), 64 * 6) << seed;
    ASSERT_EQ(arrived.sum().item<float>(), 64 * 3) << seed;
    ASSERT_EQ(back.sum().item<float>(), 64 * 3) << seed;
  }
}

TEST_F(TwoDevices, CopiesConvertAndBroadcast) {
  const at::Tensor source = values({3, 4}).to(kFirst);
  const at::Tensor target = at::empty({2, 4, 3}, at::TensorOptions(kSecond).dtype(at::kDouble));
  target.transpose(1, 2).copy_(source);
  EXPECT_TRUE(same_bytes(target[1].t(), values({3, 4}).to(at::kDouble)));
  EXPECT_TRUE(same_bytes(target[0], target[1]));
}

TEST_F(TwoDevices, EachDeviceHasItsGenerator) {
  const auto generator_of = [](at::Device device) {
    const c10::cuda::CUDAGuard guard(device);
    return generator();
  };
  at::Generator first = generator_of(kFirst), second = generator_of(kSecond);
  first.set_current_seed(1);
  second.set_current_seed(1);
  const at::Tensor a = at::rand({8}, at::TensorOptions(kSecond));
  EXPECT_EQ(first.get_offset(), 0u);
  EXPECT_EQ(second.get_offset(), 8u);
  const at::Tensor b = at::rand({8}, at::TensorOptions(kFirst));
  EXPECT_EQ(first.get_offset(), 8u);
  EXPECT_TRUE(same_bytes(a, b)) << "one seed, one stream of values";
}

TEST_F(TwoDevices, AGraphOfTheSecondDevice) {
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool(false, 1));
  const ScopedPool pool;
  const at::Tensor x = filled(kSecond, 1);
  synchronise();
  at::Tensor y;
  const auto graph = capture(pool.id(), [&] { y = x + 1; });
  EXPECT_EQ(device_of(y.const_data_ptr()), 1);
  x.fill_(4);
  graph->replay();
  EXPECT_EQ(y.sum().item<float>(), 64 * 5);
}

}  // namespace
}  // namespace slotgraph::device

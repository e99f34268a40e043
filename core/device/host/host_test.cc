// The host device as a user of libtorch sees it.
#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include "core/device/device.h"

namespace slotgraph::device {
namespace {

// Values in [-1, 1) from a small integer generator: the same on every machine.
at::Tensor values(at::IntArrayRef sizes, std::uint64_t seed = 1) {
  at::Tensor result = at::empty(sizes, at::kFloat);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    result.data_ptr<float>()[i] =
        static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 0x1p-31f;
  }
  return result;
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.to(at::kCPU).contiguous();
  const at::Tensor y = b.to(at::kCPU).contiguous();
  return x.nbytes() == y.nbytes() && x.dtype() == y.dtype() &&
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

struct Host : ::testing::Test {
  static void SetUpTestSuite() { initialise(); }
};

std::vector<at::Tensor> step(const at::Tensor& x, const std::vector<at::Tensor>& w) {
  at::Tensor h = at::gelu(at::linear(x, w[0], w[1]));
  h = at::layer_norm(h, {h.size(-1)}, w[2], w[3]);
  h = at::softmax(at::relu(h) + 0.5 * h, -1) * h;
  const at::Tensor y = at::linear(h, w[4], w[5]);
  std::vector<at::Tensor> inputs = w;
  std::vector<at::Tensor> result = torch::autograd::grad({y}, inputs, {at::ones_like(y)});
  result.push_back(y.detach());
  return result;
}

std::vector<at::Tensor> weights(at::Device device) {
  std::vector<at::Tensor> w{values({64, 32}, 2), values({64}, 3),     values({64}, 4),
                            values({64}, 5),     values({16, 64}, 6), values({16}, 7)};
  for (at::Tensor& t : w) t = t.to(device).requires_grad_(true);
  return w;
}

TEST_F(Host, ForwardAndBackwardEqualTheCpuByteForByte) {
  const auto on_cpu = step(values({8, 32}), weights(at::kCPU));
  const auto on_device = step(values({8, 32}).to(at::kCUDA), weights(at::kCUDA));
  for (std::size_t i = 0; i < on_cpu.size(); ++i)
    EXPECT_TRUE(same_bytes(on_cpu[i], on_device[i])) << i;
}

TEST_F(Host, CaptureDoesNotExecuteAndReplayReadsItsInputsAnew) {
  const auto w = weights(at::kCUDA);
  const at::Tensor x = values({8, 32}).to(at::kCUDA);
  const c10::MempoolId_t pool{0, 77};
  c10::cuda::CUDACachingAllocator::createOrIncrefPool(0, pool);
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
  synchronise();
  auto graph = make_graph();
  graph->begin_capture(pool);
  const std::vector<at::Tensor> captured = step(x, w);
  graph->end_capture();
  EXPECT_TRUE(at::isnan(captured.back().to(at::kCPU)).all().item<bool>()) << "poison";
  for (std::uint64_t seed : {8, 9}) {
    x.copy_(values({8, 32}, seed));
    graph->replay();
    const auto expected = step(values({8, 32}, seed).to(at::kCUDA), w);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(same_bytes(captured[i], expected[i])) << i;
  }
  c10::cuda::CUDACachingAllocator::releasePool(0, pool);
}

}  // namespace
}  // namespace slotgraph::device

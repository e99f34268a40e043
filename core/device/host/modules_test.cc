// Modules of torch::nn on the host device, forward and backward, on the engine's threads and on the
// calling thread.
#include <c10/core/AutogradState.h>
#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include "core/device/host/test_support.h"

namespace slotgraph::device {
namespace {

using Tensors = std::vector<at::Tensor>;
namespace nn = torch::nn;

// Parameters that do not depend on a generator.
void set_parameters(nn::Module& module) {
  const torch::NoGradGuard no_grad;
  std::uint64_t seed = 40;
  for (at::Tensor& parameter : module.parameters())
    parameter.copy_(values(parameter.sizes(), ++seed));
}

nn::Sequential network() {
  nn::Sequential module(nn::Linear(16, 32), nn::GELU(), nn::LayerNorm(nn::LayerNormOptions({32})),
                        nn::Linear(32, 8));
  set_parameters(*module);
  return module;
}

// The output and the gradient of every parameter, through .backward().
Tensors run(nn::Sequential module, at::Tensor input, at::Device device) {
  module->to(device);
  for (const at::Tensor& parameter : module->parameters())
    EXPECT_EQ(parameter.device().type(), device.type());
  const at::Tensor output = module->forward(input.to(device));
  (output * output).sum().backward();
  Tensors result{output.detach()};
  for (const at::Tensor& parameter : module->parameters()) result.push_back(parameter.grad());
  return result;
}

void expect_equal(const Tensors& found, const Tensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(found[i].defined()) << i;
    EXPECT_TRUE(found[i].is_cuda()) << i;
    EXPECT_TRUE(same_bytes(found[i], expected[i])) << i;
  }
}

// Runs with the engine's device thread (false) and on the calling thread only (true).
struct Modules : ::testing::TestWithParam<bool> {
  static void SetUpTestSuite() { initialise(); }
  Modules() { c10::AutogradState::get_tls_state().set_multithreading_enabled(!GetParam()); }
  ~Modules() override { c10::AutogradState::get_tls_state().set_multithreading_enabled(true); }
};
INSTANTIATE_TEST_SUITE_P(Threads, Modules, ::testing::Bool(), [](const auto& info) {
  return info.param ? "CallingThread" : "EngineThreads";
});

TEST_P(Modules, ASequentialNetworkEqualsTheCpu) {
  const at::Tensor input = values({6, 16}, 3);
  expect_equal(run(network(), input, at::kCUDA), run(network(), input, at::kCPU));
}

TEST_P(Modules, AnEmbeddingEqualsTheCpu) {
  const at::Tensor places = (values({5, 3}, 6).abs() * 10).to(at::kLong);
  const auto make = [] {
    nn::Sequential module(nn::Embedding(10, 16), nn::Linear(16, 4), nn::SiLU());
    set_parameters(*module);
    return module;
  };
  expect_equal(run(make(), places, at::kCUDA), run(make(), places, at::kCPU));
}

TEST_P(Modules, TrainingWithAnOptimizerEqualsTheCpu) {
  const auto train = [](at::Device device) {
    nn::Sequential module = network();
    module->to(device);
    torch::optim::SGD optimizer(module->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    const at::Tensor target = values({6, 8}, 9).to(device);
    for (std::uint64_t step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      const at::Tensor output = module->forward(values({6, 16}, 100 + step).to(device));
      torch::mse_loss(output, target).backward();
      optimizer.step();
    }
    Tensors result;
    for (const at::Tensor& parameter : module->parameters()) result.push_back(parameter.detach());
    return result;
  };
  expect_equal(train(at::kCUDA), train(at::kCPU));
}

TEST_P(Modules, TrainingWithAdamEqualsTheCpu) {
  const auto train = [](at::Device device) {
    nn::Linear module(16, 8);
    set_parameters(*module);
    module->to(device);
    torch::optim::AdamW optimizer(module->parameters(), torch::optim::AdamWOptions(0.01));
    for (std::uint64_t step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      module->forward(values({6, 16}, 100 + step).to(device)).pow(2).mean().backward();
      optimizer.step();
    }
    return Tensors{module->weight.detach(), module->bias.detach()};
  };
  expect_equal(train(at::kCUDA), train(at::kCPU));
}

TEST_P(Modules, DropoutScalesWhatItKeepsAndItsGradientUsesTheSameMask) {
  at::Generator generator = device::generator();
  generator.set_current_seed(4);
  nn::Dropout module(0.5);
  const at::Tensor x = at::ones({400}, at::kCUDA).requires_grad_(true);
  const at::Tensor y = module->forward(x);
  y.sum().backward();
  EXPECT_TRUE(same_bytes(x.grad(), y.detach()));
  const at::Tensor host = y.detach().to(at::kCPU);
  EXPECT_TRUE(((host == 0) | (host == 2)).all().item<bool>());
  EXPECT_NEAR(host.mean().item<double>(), 1, 0.25);
  module->eval();
  EXPECT_TRUE(module->forward(x).is_same(x) || same_bytes(module->forward(x), x.detach()));
}

TEST_P(Modules, GradientsAccumulate) {
  nn::Sequential once = network(), twice = network();
  const at::Tensor input = values({6, 16}, 3);
  const Tensors first = run(once, input, at::kCUDA);
  run(twice, input, at::kCUDA);
  const Tensors second = run(twice, input, at::kCUDA);
  for (std::size_t i = 1; i < first.size(); ++i)
    EXPECT_TRUE(same_bytes(second[i], first[i] + first[i])) << i;
}

}  // namespace
}  // namespace slotgraph::device

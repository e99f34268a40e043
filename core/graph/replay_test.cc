// Replays: arguments, streams, lives of what is handed out, reset.
#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include "core/device/device.h"
#include "core/graph/testing/rig.h"
#include "core/testing/rule.h"

namespace slotgraph {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the rig's names

struct Replay : DeviceTest {
  static at::Tensor expected(const Rig& rig, const at::Tensor& x) {
    return at::matmul(at::tanh(at::matmul(x, rig.weight)), rig.weight);
  }
  // What reading or writing the tensor throws.
  static std::string access(const std::function<void()>& use) {
    try {
      use();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Replay, NamedInputsAreFoundByName) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    rig.set_forward([&](at::TensorList in, const NamedTensors& named) -> Tensors {
      return {at::matmul(in[0], rig.weight) * named[0].second + named[1].second};
    });
    for (Inputs& sample : rig.samples) {
      const std::int64_t rows = sample.positional[0].size(0);
      sample.named = {{"scale", ramp(rows, 1)}, {"shift", ramp(rows, 2)}};
    }
    const auto set = rig.capture(mode);
    const at::Tensor x = ramp(3, 0.3), scale = ramp(3, 0.5), shift = ramp(3, -1);
    const at::Tensor right = at::matmul(x, rig.weight) * scale + shift;
    const at::Tensor sparse =
        at::_sparse_coo_tensor_unsafe(at::zeros({2, 1}, at::kLong), at::ones({1}), {3, kHidden});
    const Tensors out = set->at(0).forward({{x}, {{"shift", shift}, {"scale", scale}}});
    EXPECT_TRUE(same_bytes(out[0], right));
    set->at(0).release();
    EXPECT_EQ(rule([&] { set->at(0).forward({{x}, {{"shift", shift}}}); }), "P01");
    EXPECT_EQ(rule([&] {
                set->at(0).forward({{x}, {{"shift", shift}, {"scale", scale}, {"more", x}}});
              }),
              "P05");
    EXPECT_EQ(rule([&] {
                set->at(0).forward({{x, x}, {{"shift", shift}, {"scale", scale}}});
              }),
              "P05");
    EXPECT_EQ(rule([&] {
                set->at(0).forward({{sparse}, {{"shift", shift}, {"scale", scale}}});
              }),
              "P05");
  }
}

TEST_F(Replay, WhatLiesInItsStaticPlaceIsNotCopied) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    const auto set = rig.capture(mode);
    const Tensors places = set->at(1).static_inputs();
    ASSERT_EQ(places.size(), 1u);
    const at::Tensor x = ramp(3, 0.7);
    places[0].copy_(x);
    const Tensors out = set->at(1).forward({{places[0].detach().requires_grad_(true)}, {}});
    EXPECT_TRUE(same_bytes(out[0], expected(rig, x)));
  }
}

TEST_F(Replay, MissingGradientsAreZeros) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
      return {at::matmul(in[0], rig.weight), in[0] * 3};
    });
    const auto set = rig.capture(mode);
    for (const int used : {0, 1, 0}) {
      const at::Tensor& x = rig.samples[0].positional[0];
      const Tensors out = set->at(0).forward(rig.samples[0]);
      const at::Tensor eager = used == 0 ? at::matmul(x, rig.weight) : x * 3;
      EXPECT_TRUE(same_bytes(gradient(out[used], x), gradient(eager, x) + 0)) << used;
    }
  }
}

TEST_F(Replay, P03GradientsMustFit) {
  Rig rig;
  const auto set = rig.capture();
  const Tensors out = set->at(0).forward(rig.samples[0]);
  const auto node = out[0].grad_fn();
  EXPECT_EQ(rule([&] { (*node)({}); }), "P03");
  EXPECT_EQ(rule([&] { (*node)({ramp(4, 0)}); }), "P03");
  EXPECT_EQ(rule([&] { (*node)({ramp(3, 0)}); }), "") << "nothing was ended by the refusals";
}

TEST_F(Replay, AnotherTrainingModeRunsEagerly) {
  Rig rig;
  const auto set = rig.capture();
  const int calls = rig.calls;
  rig.module->eval();
  const Tensors out = set->at(0).forward(rig.samples[0]);
  EXPECT_EQ(rig.calls, calls + 1);
  EXPECT_TRUE(same_bytes(out[0], expected(rig, rig.samples[0].positional[0])));
  rig.module->train();
  const Tensors again = set->at(0).forward(rig.samples[0]);
  EXPECT_EQ(rig.calls, calls + 1) << "replayed";
  EXPECT_TRUE(same_bytes(again[0], out[0]));
}

TEST_F(Replay, ResetInAnyOrderAndNoUseAfterIt) {
  for (const Mode mode : slot_modes()) {
    for (const bool backwards : {false, true}) {
      const std::size_t before = allocated();
      {
        Rig rig;
        const auto set = rig.capture(mode);
        const Tensors kept = set->at(0).forward(rig.samples[0]);
        for (int i = 0; i < 4; ++i) {
          const int branch = backwards ? 3 - i : i;
          set->at(branch).reset();
          EXPECT_EQ(rule([&] { set->at(branch).forward(rig.samples[branch]); }), "P09");
          EXPECT_EQ(rule([&] { set->at(branch).static_inputs(); }), "P09");
          if (i == 0) {
            const Tensors out = set->at(1).forward(rig.samples[1]);
            EXPECT_TRUE(same_bytes(out[0], expected(rig, rig.samples[1].positional[0])));
          }
        }
        EXPECT_EQ(rule([&] { gradient(kept[0], rig.samples[0].positional[0]); }), "P09");
      }
      EXPECT_EQ(allocated(), before);
    }
  }
}

// The adversarial device order shows every missing dependency.
TEST_F(Replay, ASideStreamWaitsAndIsWaitedFor) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    const auto set = rig.capture(mode);
    const ReplayOptions aside{.stream = c10::cuda::getStreamFromPool()};
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      device::synchronise();
      device::configure({.order_seed = seed});
      const at::Tensor x = (ramp(3, 0.1) * static_cast<double>(seed)).requires_grad_(true);
      const at::Tensor right = expected(rig, x);
      const Tensors out = set->at(0).forward({{x}, {}}, aside);
      const at::Tensor copy = out[0].detach().clone();
      const Tensors found =
          torch::autograd::grad({out[0]}, {x, rig.weight}, {at::ones_like(out[0])});
      const Tensors truth = torch::autograd::grad({right}, {x, rig.weight}, {at::ones_like(right)});
      const at::Tensor gradient_copy = found[0].clone();
      set->end_step();
      ASSERT_TRUE(same_bytes(copy, right)) << seed;
      ASSERT_TRUE(same_bytes(gradient_copy, truth[0])) << seed;
      ASSERT_TRUE(same_bytes(found[1], truth[1])) << seed;
    }
    device::configure({});
  }
}

TEST_F(Replay, ParameterGradientsOwnTheirMemory) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    const auto set = rig.capture(mode);
    Tensors kept, truth;
    for (int i = 0; i < 2; ++i) {
      const at::Tensor x = ramp(3, i).requires_grad_(true);
      const Tensors out = set->at(0).forward({{x}, {}});
      kept.push_back(torch::autograd::grad({out[0]}, {rig.weight}, {at::ones_like(out[0])})[0]);
      const at::Tensor eager = expected(rig, x);
      truth.push_back(torch::autograd::grad({eager}, {rig.weight}, {at::ones_like(eager)})[0]);
    }
    EXPECT_NE(kept[0].const_data_ptr(), kept[1].const_data_ptr());
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(same_bytes(kept[i], truth[i])) << i;
  }
}

TEST_F(Replay, LentParameterGradientsAreNeitherReturnedNorCopied) {
  for (const Mode mode : slot_modes()) {
    for (const bool checking : {false, true}) {
      Rig rig;
      rig.options.checking = checking;
      at::Tensor sum = at::zeros_like(rig.weight).detach();
      Tensors kept;
      std::unique_ptr<CallableSet> set;
      rig.options.borrow_parameter_gradients = [&](int branch, const Tensors& gradients) {
        EXPECT_EQ(branch, 0);
        sum.add_(gradients[0]);
        kept = gradients;
        EXPECT_EQ(rule([&] { set->at(1).forward(rig.samples[1]); }), "P10");
      };
      set = rig.capture(mode);
      const at::Tensor& x = rig.samples[0].positional[0];
      const Tensors out = set->at(0).forward(rig.samples[0]);
      const Tensors found = torch::autograd::grad(
          {out[0]}, {x, rig.weight}, {at::ones_like(out[0])}, std::nullopt, false, true);
      EXPECT_FALSE(found[1].defined());
      const at::Tensor eager = expected(rig, x);
      const Tensors truth = torch::autograd::grad({eager}, {x, rig.weight}, {at::ones_like(eager)});
      EXPECT_TRUE(same_bytes(sum, truth[1]));
      EXPECT_TRUE(same_bytes(found[0], truth[0]));
      const std::string use = access([&] { kept[0].clone(); });
      EXPECT_EQ(use.find("[P11]") != std::string::npos, checking) << use;
    }
  }
}

// Checking mode: who keeps what is no longer his.
TEST_F(Replay, P11OutputsAreGoneAfterTheirBackward) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    rig.options.checking = true;
    const auto set = rig.capture(mode);
    const Tensors out = set->at(0).forward(rig.samples[0]);
    const at::Tensor view = out[0].detach().narrow(0, 0, 1);
    EXPECT_EQ(access([&] { view.clone(); }), "");
    gradient(out[0], rig.samples[0].positional[0]);
    EXPECT_NE(access([&] { view.clone(); }).find("[P11]"), std::string::npos);
    EXPECT_NE(access([&] { at::Tensor(view).add_(1); }).find("[P11]"), std::string::npos);
    const Tensors again = set->at(0).forward(rig.samples[0]);
    EXPECT_TRUE(same_bytes(again[0], expected(rig, rig.samples[0].positional[0])));
  }
}

TEST_F(Replay, P11AWriteByOtherMeansIsFoundByTheNextFrame) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    rig.options.checking = true;
    const auto set = rig.capture(mode);
    const Tensors out = set->at(0).forward(rig.samples[0]);
    auto* const address = static_cast<float*>(out[0].data_ptr());
    const at::Tensor raw = at::from_blob(address, {1}, at::TensorOptions(at::kCUDA));
    gradient(out[0], rig.samples[0].positional[0]);
    raw.fill_(1);
    EXPECT_EQ(rule([&] { set->at(2).forward(rig.samples[2]); }), "P11") << "a frame of its colour";
    EXPECT_EQ(rule([&] { set->at(2).forward(rig.samples[2]); }), "") << "told once";
  }
}

TEST_F(Replay, P11LeadingGradientsLiveUntilTheEndOfTheNextEvent) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    rig.options.checking = true;
    const auto set = rig.capture(mode);
    const auto backward_of = [&](int branch) {
      const Tensors out = set->at(branch).forward(rig.samples[branch]);
      return gradient(out[0], rig.samples[branch].positional[0]);
    };
    const at::Tensor first = backward_of(0);
    const at::Tensor second = backward_of(1);
    EXPECT_EQ(access([&] { first.clone(); }), "") << "the next event may still read it";
    backward_of(2);
    EXPECT_NE(access([&] { first.clone(); }).find("[P11]"), std::string::npos);
    EXPECT_EQ(access([&] { second.clone(); }), "");
    set->end_step();
    EXPECT_NE(access([&] { second.clone(); }).find("[P11]"), std::string::npos);
  }
}

// Nothing is allocated by a replay but the copies that its contract names.
TEST_F(Replay, AReplayAllocatesNothingButItsCopies) {
  namespace caching = c10::cuda::CUDACachingAllocator;
  for (const Mode mode : slot_modes()) {
    Rig rig;
    rig.options.borrow_parameter_gradients = [](int, const Tensors&) {};
    const auto set = rig.capture(mode);
    const at::Tensor one = ramp(3, 1);
    const auto allocations = [] { return caching::getDeviceStats(0).allocation[0].allocated; };
    const auto before = allocations();
    const Tensors out = set->at(0).forward(rig.samples[0]);
    torch::autograd::grad({out[0]}, {rig.samples[0].positional[0]}, {one});
    EXPECT_EQ(allocations(), before);
  }
}

}  // namespace
}  // namespace slotgraph

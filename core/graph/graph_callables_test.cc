// The contract of graph_callables: what is refused, what is undone, what is exclusive.
#include "core/graph/graph_callables.h"

#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "core/device/device.h"
#include "core/graph/testing/rig.h"
#include "core/testing/rule.h"

namespace slotgraph {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the rig's names

namespace caching = c10::cuda::CUDACachingAllocator;

struct Callables : DeviceTest {
  // A capture that fails must leave memory, scopes and the stream as they were, so that the next
  // one works.
  static void expect_clean_failure(Rig& setup, const std::string& expected) {
    const std::size_t before = allocated();
    EXPECT_EQ(rule([&] { setup.capture(); }), expected);
    EXPECT_EQ(allocated(), before);
    Rig other;
    const auto set = other.capture();
    EXPECT_EQ(set->at(0).forward(other.samples[0]).size(), 1u);
  }
};

TEST_F(Callables, BadRequestsAreRefusedBeforeAnythingRuns) {
  const auto refused = [](const std::function<void(Rig&)>& spoil) {
    Rig setup;
    spoil(setup);
    const std::string found = rule([&] { setup.capture(); });
    EXPECT_EQ(setup.calls, 0) << found;
    return found;
  };
  EXPECT_EQ(refused([](Rig& s) { s.modules.pop_back(); }), "C06");
  EXPECT_EQ(refused([](Rig& s) { s.samples.pop_back(); }), "C06");
  EXPECT_EQ(refused([](Rig& s) { s.module->eval(); }), "C11");
  EXPECT_EQ(refused([](Rig& s) { s.buffer.requires_grad_(true); }), "C18");
  EXPECT_EQ(refused([](Rig& s) { s.samples[0].positional[0] = at::ones({3, kHidden}); }), "C19");
  EXPECT_EQ(refused([](Rig& s) { s.samples[0].positional[0] = at::Tensor(); }), "C19");
  EXPECT_EQ(refused([](Rig& s) { s.samples[0].named = {{"late", at::ones({1})}}; }), "C20");
  EXPECT_EQ(refused([](Rig& s) { s.samples[2] = {{s.weight.detach()}, {}}; }), "C21");
  EXPECT_EQ(refused([](Rig& s) { s.samples[2] = {{}, {{"x", ramp(6, 0)}}}; }), "C25");
  EXPECT_EQ(refused([](Rig& s) { s.samples[1].positional.push_back(ramp(1, 0)); }), "W07");
  EXPECT_EQ(refused([](Rig& s) { s.samples[1].positional[0] = ramp(4, 0).requires_grad_(true); }),
            "W08");
  EXPECT_EQ(refused([](Rig& s) { s.samples[1].positional[0] = ramp(3, 0); }), "W08")
      << "gradient wish";
  EXPECT_EQ(refused([](Rig& s) {
              for (int v : {0, 2}) s.plan.slots[v + 1].colour = 0;
            }),
            "PL04");
}

TEST_F(Callables, AFrameIsExclusiveUntilItsBackwardOrTheDeathOfItsNode) {
  Rig setup;
  const auto set = setup.capture();
  Tensors first = set->at(0).forward(setup.samples[0]);
  EXPECT_EQ(rule([&] { set->at(0).forward(setup.samples[0]); }), "P06");
  EXPECT_EQ(rule([&] { set->at(2).forward(setup.samples[2]); }), "P06")
      << "another variant of the frame";
  gradient(first[0], setup.samples[0].positional[0]);
  Tensors second = set->at(2).forward(setup.samples[2]);
  second.clear();
  EXPECT_EQ(rule([&] { set->at(0).forward(setup.samples[0]); }), "") << "the node is dead";
}

TEST_F(Callables, ReleaseAndResetEndAFlight) {
  Rig setup;
  const auto set = setup.capture();
  const Tensors kept = set->at(0).forward(setup.samples[0]);
  set->at(0).release();
  const Tensors newer = set->at(0).forward(setup.samples[0]);
  EXPECT_EQ(rule([&] { gradient(kept[0], setup.samples[0].positional[0]); }), "P07")
      << "an older flight";
  set->release();
  EXPECT_EQ(rule([&] { gradient(newer[0], setup.samples[0].positional[0]); }), "P07");
}

TEST_F(Callables, ASecondBackwardIsRefused) {
  Rig setup;
  const auto set = setup.capture();
  const Tensors out = set->at(0).forward(setup.samples[0]);
  const Tensors wanted{setup.samples[0].positional[0]};
  torch::autograd::grad({out[0]}, wanted, {at::ones_like(out[0])}, /*retain_graph=*/true);
  EXPECT_EQ(rule([&] { gradient(out[0], wanted[0]); }), "P07");
}

TEST_F(Callables, AGradientThatTheEventBeforeStillOwnsIsNotOverwritten) {
  Rig setup;
  setup.plan.gradient_colours = {{0, 0}};
  setup.plan.covered_counts = {1};
  setup.plan.base_order = {1, -1, 1, -1};
  for (Slot& slot : setup.plan.slots) slot.gradient_colour = 0;
  EXPECT_EQ(rule([&] { setup.capture(); }), "PL05");
  Rig good;
  const auto set = good.capture();
  const Tensors a = set->at(0).forward(good.samples[0]);
  gradient(a[0], good.samples[0].positional[0]);
  const Tensors b = set->at(2).forward(good.samples[2]);
  EXPECT_EQ(rule([&] { gradient(b[0], good.samples[2].positional[0]); }), "")
      << "the same chunk and slot";
}

TEST_F(Callables, WrongInputsAreRefusedAndNothingIsCopied) {
  Rig setup;
  const auto set = setup.capture();
  EXPECT_EQ(rule([&] { set->at(0).forward({{ramp(4, 0)}, {}}); }), "P05");
  EXPECT_EQ(rule([&] { set->at(0).forward({{ramp(3, 0).to(at::kDouble)}, {}}); }), "P05");
  EXPECT_EQ(rule([&] { set->at(0).forward({{}, {}}); }), "P05");
  EXPECT_EQ(rule([&] { set->at(0).forward(setup.samples[0]); }), "")
      << "the frame is not in flight";
}

TEST_F(Callables, VariantsOfAFrameShareAddressesAndTheArenaIsTheLargest) {
  Rig setup;
  const auto set = setup.capture();
  const void* addresses[2];
  for (const int variant : {0, 1}) {
    const Tensors out = set->at(2 * variant).forward(setup.samples[2 * variant]);
    addresses[variant] = out[0].const_data_ptr();
  }
  EXPECT_EQ(addresses[0], addresses[1]);
  Rig only_large;
  for (int branch = 0; branch < 2; ++branch) only_large.samples[branch] = only_large.samples[2];
  EXPECT_EQ(set->memory().arena_bytes, only_large.capture()->memory().arena_bytes);
}

TEST_F(Callables, FailuresOfModulesAreNamedAndUndone) {
  at::Tensor kept;
  Rig cache([&](int call) {
    if (call >= 2) kept = at::empty({1000}, at::kCUDA);
  });
  EXPECT_EQ(rule([&] { cache.capture(); }), "PM01");
  kept = at::Tensor();
  Rig* self = nullptr;
  Rig writes([&](int) {
    const at::NoGradGuard none;
    self->samples[0].positional[0].add_(1);
  });
  self = &writes;
  expect_clean_failure(writes, "PS01");
  const at::Tensor spare = ramp(1, 0.25);
  Rig replaces([&](int) { self->buffer.set_data(spare); });
  self = &replaces;
  EXPECT_EQ(rule([&] { replaces.capture(); }), "PS02");
}

TEST_F(Callables, AnExceptionInsideACaptureLeavesNothingOpen) {
  Rig setup([](int call) {
    if (call == 7) throw std::runtime_error("in capture");
  });
  const std::size_t before = allocated();
  EXPECT_THROW(setup.capture(), std::runtime_error);
  EXPECT_EQ(allocated(), before);
  Rig other;
  EXPECT_EQ(rule([&] { other.capture(); }), "");
}

TEST_F(Callables, AFrameThatSettlesLateIsCapturedAgain) {
  // Warm-up is six calls: two modules, three iterations. Captures then ask for another size, always
  // the same.
  Rig setup([](int call) { const at::Tensor t = at::empty({call >= 6 ? 300 : 200}, at::kCUDA); });
  const auto set = setup.capture();
  EXPECT_GT(setup.calls, 10) << "the first capture was discarded";
  const Tensors out = set->at(0).forward(setup.samples[0]);
  EXPECT_TRUE(same_bytes(
      out[0], at::matmul(at::tanh(at::matmul(setup.samples[0].positional[0], setup.weight)),
                         setup.weight)));
}

TEST_F(Callables, BuffersAndGeneratorAreWhatTheyWereAfterSuccessAndFailure) {
  for (const bool fail : {false, true}) {
    Rig* self = nullptr;
    Rig setup([&](int call) {
      const at::NoGradGuard none;
      self->buffer.add_(1);
      at::Tensor noise = at::empty({4}, at::kCUDA);
      noise.uniform_();
      if (fail && call == 8) throw std::runtime_error("late");
    });
    self = &setup;
    const at::Tensor before = setup.buffer.clone();
    const at::Tensor state = device::generator().get_state();
    rule([&] {
      try {
        setup.capture();
      } catch (const std::runtime_error&) {
      }
    });
    EXPECT_TRUE(same_bytes(setup.buffer, before));
    EXPECT_TRUE(same_bytes(device::generator().get_state(), state));
  }
}

TEST_F(Callables, MemoryComesBackInEveryOrderOfDropping) {
  for (const Mode mode :
       {Mode::kPlacement, Mode::kArena, Mode::kCheckpoint, Mode::kNative, Mode::kPerVariant}) {
    for (const bool set_first : {true, false}) {
      const std::size_t before = allocated();
      {
        Rig rig;
        auto set = rig.capture(mode);
        Tensors out = set->at(0).forward(rig.samples[0]);
        at::Tensor grad = gradient(out[0], rig.samples[0].positional[0]);
        if (set_first) set.reset();
        grad = at::Tensor();
        out.clear();
      }
      EXPECT_EQ(allocated(), before) << static_cast<int>(mode) << set_first;
    }
  }
  device::synchronise();
  caching::emptyCache();
  EXPECT_EQ(device::memory_info().free_bytes, device::memory_info().total_bytes);
}

// Sources that lie where other targets are must be read before they are overwritten.
TEST_F(Callables, InputsInStaticPlacesOfOtherInputsAreMovedAsIfAtOnce) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
      return {at::matmul(in[0], rig.weight) + in[1] * 2};
    });
    for (Inputs& sample : rig.samples)
      sample.positional.push_back(ramp(sample.positional[0].size(0), 0.7));
    const auto set = rig.capture(mode);
    const at::Tensor a = ramp(3, 0.2), b = ramp(3, 0.9);
    const Tensors places = set->at(0).static_inputs();
    places[0].copy_(a);
    places[1].copy_(b);
    const Tensors swapped = set->at(0).forward({{places[1], places[0]}, {}});
    EXPECT_TRUE(same_bytes(swapped[0], at::matmul(b, rig.weight) + a * 2));
    set->at(0).release();
    const Tensors chained = set->at(0).forward({{swapped[0].detach(), swapped[0].detach()}, {}});
    const at::Tensor y = at::matmul(b, rig.weight) + a * 2;
    EXPECT_TRUE(same_bytes(chained[0], at::matmul(y, rig.weight) + y * 2));
  }
}

// Frames share transients and staging, so a replay must wait for the last one whatever its stream.
TEST_F(Callables, ReplaysOnDifferentStreamsAreOrderedUnderEveryDeviceOrder) {
  Rig rig;
  const auto set = rig.capture();
  const c10::cuda::CUDAStream streams[] = {c10::cuda::getStreamFromPool(),
                                           c10::cuda::getStreamFromPool()};
  Tensors inputs, expected;
  for (int slot = 0; slot < 2; ++slot) {
    inputs.push_back(ramp(3, 0.3 * slot).requires_grad_(true));
    const at::Tensor y = at::matmul(at::tanh(at::matmul(inputs[slot], rig.weight)), rig.weight);
    expected.push_back(y);
    expected.push_back(gradient(y, inputs[slot]));
  }
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    device::synchronise();
    device::configure({.order_seed = seed});
    Tensors outputs, found(4);
    for (int slot = 0; slot < 2; ++slot) {
      const c10::cuda::CUDAStreamGuard on(streams[slot]);
      outputs.push_back(set->at(slot).forward({{inputs[slot]}, {}})[0]);
      found[2 * slot] = outputs[slot].detach().clone();
    }
    for (int slot = 0; slot < 2; ++slot) {
      const c10::cuda::CUDAStreamGuard on(streams[slot]);
      found[2 * slot + 1] = gradient(outputs[slot], inputs[slot]).clone();
    }
    set->end_step();
    device::synchronise();
    for (int i = 0; i < 4; ++i)
      ASSERT_TRUE(same_bytes(found[i], expected[i])) << "seed " << seed << ", tensor " << i;
  }
  device::configure({});
}

// PyTorch's arrangement shares one pool among the frames of a variant: right in the order of
// capture only.
TEST_F(Callables, OnePoolForAVariantBreaksInAnotherOrderAndPrivatePoolsAndPlacementDoNot) {
  const auto differing = [](Mode mode, bool captured_order) {
    Rig setup;
    const auto set = setup.capture(mode);
    int different = 0;
    Tensors inputs, outputs;
    for (int slot = 0; slot < 2; ++slot) {
      inputs.push_back(ramp(3, 0.1 * slot).requires_grad_(true));
      outputs.push_back(set->at(slot).forward({{inputs[slot]}, {}})[0]);
    }
    for (int i = 0; i < 2; ++i) {
      const int slot = captured_order ? i : 1 - i;
      const at::Tensor expected_output =
          at::matmul(at::tanh(at::matmul(inputs[slot], setup.weight)), setup.weight);
      const at::Tensor expected = gradient(expected_output, inputs[slot]);
      different += !same_bytes(gradient(outputs[slot], inputs[slot]), expected);
    }
    return different;
  };
  EXPECT_EQ(differing(Mode::kPerVariant, true), 0);
  EXPECT_GT(differing(Mode::kPerVariant, false), 0);
  for (const Mode mode : graph_modes()) {
    EXPECT_EQ(differing(mode, true), 0);
    EXPECT_EQ(differing(mode, false), 0);
  }
}

}  // namespace
}  // namespace slotgraph

// What is refused in a capture, by its rule, and that nothing is left behind.
#include <ATen/Functions.h>

#include "core/graph/testing/rig.h"
#include "core/testing/rule.h"

namespace slotgraph {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the rig's names

// Warm-up is six calls: two modules, three runs each. The first capture is call 6.
constexpr int kFirstCapture = 6;

at::Tensor base(const Rig& rig, at::TensorList in) { return at::matmul(in[0], rig.weight); }

// From the first capture on the module does something else than in its warm-up.
struct Late : RulesTest {
  static std::string late(Mode mode,
                          const std::function<Tensors(Rig&, at::TensorList, bool)>& forward) {
    Rig rig;
    rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
      return forward(rig, in, rig.calls >= kFirstCapture);
    });
    return broken(rig, mode);
  }
};

TEST_F(Late, K01MoreAndFewerSavedTensors) {
  for (const Mode mode : {Mode::kArena, Mode::kCheckpoint}) {
    for (const bool more : {true, false}) {
      EXPECT_EQ(late(mode,
                     [&](Rig& rig, at::TensorList in, bool is_late) -> Tensors {
                       const at::Tensor y = base(rig, in);
                       return {is_late == more ? at::tanh(y) : y * 2};
                     }),
                "K01");
    }
  }
}

TEST_F(Late, K02AnotherSignatureAndAnotherAlias) {
  for (const Mode mode : {Mode::kArena, Mode::kCheckpoint}) {
    EXPECT_EQ(late(mode,
                   [](Rig& rig, at::TensorList in, bool is_late) -> Tensors {
                     const at::Tensor y = base(rig, in);
                     return {at::tanh(is_late ? y.t().contiguous().t() : y).contiguous()};
                   }),
              "K02");
    EXPECT_EQ(late(mode,
                   [](Rig& rig, at::TensorList in, bool is_late) -> Tensors {
                     const at::Tensor y = base(rig, in);
                     const at::Tensor saved = y.detach();
                     return {Saves::apply(Saves::apply(y, saved), is_late ? saved.clone() : saved)};
                   }),
              "K02")
        << "equal signatures, another storage";
  }
}

TEST_F(Late, K03AnotherExternalStorage) {
  for (const Mode mode : {Mode::kArena, Mode::kCheckpoint}) {
    EXPECT_EQ(late(mode,
                   [](Rig& rig, at::TensorList in, bool is_late) -> Tensors {
                     const at::Tensor state =
                         is_late ? rig.buffer : rig.weight.narrow(0, 0, 1).detach();
                     return {Saves::apply(base(rig, in), state)};
                   }),
              "K03");
  }
}

TEST_F(Late, K04OtherOutputs) {
  for (const Mode mode : slot_modes()) {
    EXPECT_EQ(late(mode,
                   [](Rig& rig, at::TensorList in, bool is_late) -> Tensors {
                     const at::Tensor y = base(rig, in);
                     if (is_late) return {y, y * 2};
                     return {y};
                   }),
              "K04");
  }
}

struct MaybeGradient : torch::autograd::Function<MaybeGradient> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight, bool input, bool parameter) {
    context->saved_data["input"] = input;
    context->saved_data["parameter"] = parameter;
    context->save_for_backward({x, weight});
    return at::matmul(x, weight);
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& incoming) {
    const Tensors saved = context->get_saved_variables();
    const bool input = context->saved_data["input"].toBool();
    const bool parameter = context->saved_data["parameter"].toBool();
    return {input ? at::matmul(incoming[0], saved[1].t()) : at::Tensor(),
            parameter ? at::matmul(saved[0].t(), incoming[0]) : at::Tensor(), at::Tensor(),
            at::Tensor()};
  }
};

TEST_F(Late, K05AndK07LostGradients) {
  for (const Mode mode : slot_modes()) {
    EXPECT_EQ(late(mode,
                   [](Rig& rig, at::TensorList in, bool is_late) -> Tensors {
                     return {MaybeGradient::apply(in[0], rig.weight, !is_late, true)};
                   }),
              "K05");
    EXPECT_EQ(late(mode,
                   [](Rig& rig, at::TensorList in, bool is_late) -> Tensors {
                     return {MaybeGradient::apply(in[0], rig.weight, true, !is_late)};
                   }),
              "K07");
  }
}

TEST_F(Late, PS01AWriteToAnInputInTheCaptureOnly) {
  for (const Mode mode : slot_modes()) {
    EXPECT_EQ(late(mode,
                   [](Rig& rig, at::TensorList in, bool is_late) -> Tensors {
                     if (is_late) in[0].detach().add_(1);
                     return {base(rig, in)};
                   }),
              mode == Mode::kPlacement ? "PS01" : "K02")
        << "copied frames see another version of what is saved";
  }
}

// A tensor that autograd's hooks do not see: born in its arena it is right, copied it would be
// lost.
struct Hidden : torch::autograd::Function<Hidden> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->saved_data["kept"] = at::tanh(x);
    return x * 2;
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& incoming) {
    return {incoming[0] * context->saved_data["kept"].toTensor()};
  }
};

TEST_F(Late, K09HiddenSavesAreFoundWhereTheyWouldBeLost) {
  const auto forward = [](at::TensorList in, const NamedTensors&) -> Tensors {
    return {Hidden::apply(in[0])};
  };
  for (const Mode mode : {Mode::kArena, Mode::kCheckpoint}) EXPECT_EQ(broken(forward, mode), "K09");
  EXPECT_EQ(broken(forward, Mode::kPlacement), "");
}

TEST_F(Late, K09ACacheThatIsBornInACapture) {
  for (const Mode mode : {Mode::kArena, Mode::kCheckpoint}) {
    Rig rig;
    at::Tensor cache;
    rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
      if (rig.calls == kFirstCapture) cache = at::empty({1000}, at::kCUDA);
      return {base(rig, in)};
    });
    EXPECT_EQ(rule([&] { rig.capture(mode); }), "K09");
  }
}

TEST_F(Late, WhatAModuleHoldsMayLiveOn) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    at::Tensor kept;
    rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
      kept = at::tanh(base(rig, in));
      return {kept * 2};
    });
    for (GraphModule& module : rig.modules) module.held = [&] { return Tensors{kept}; };
    const auto set = rig.capture(mode);
    const Tensors out = set->at(2).forward(rig.samples[2]);
    EXPECT_TRUE(
        same_bytes(out[0], at::tanh(at::matmul(rig.samples[2].positional[0], rig.weight)) * 2));
  }
}

TEST_F(Late, PM02AnOutputInForeignMemory) {
  const at::Tensor foreign = ramp(3, 5);
  EXPECT_EQ(broken(
                [&](at::TensorList in, const NamedTensors&) -> Tensors {
                  return {in[0] * 2, foreign.narrow(0, 0, 1)};
                },
                Mode::kPlacement),
            "PM02");
}

// Captures ask for other sizes each time: after the restarts the frames are copied.
TEST_F(Late, AFrameThatNeverSettlesIsCopied) {
  Rig rig([](int call) { const at::Tensor t = at::empty({100 * (call % 7 + 1)}, at::kCUDA); });
  const auto set = rig.capture(Mode::kPlacement);
  EXPECT_GT(set->memory().copied_bytes, 0u);
  for (const int branch : {0, 2}) {
    const at::Tensor& input = rig.samples[branch].positional[0];
    const Tensors out = set->at(branch).forward(rig.samples[branch]);
    const at::Tensor expected = at::matmul(at::tanh(at::matmul(input, rig.weight)), rig.weight);
    EXPECT_TRUE(same_bytes(out[0], expected));
    EXPECT_TRUE(same_bytes(gradient(out[0], input), gradient(expected, input)));
  }
}

}  // namespace
}  // namespace slotgraph

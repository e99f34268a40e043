// Every rule that a capture may break once it runs modules: its id, and that nothing is left
// behind.
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <stdexcept>

#include "core/device/device.h"
#include "core/graph/modes/request.h"
#include "core/graph/state/process_state.h"
#include "core/graph/testing/rig.h"
#include "core/graph/warmup/saved_hooks.h"
#include "core/testing/rule.h"

namespace slotgraph {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the rig's names

struct Rules : DeviceTest {
  // Captures in the mode; afterwards memory and hooks are what they were, and another rig works.
  static std::string broken(Rig& rig, Mode mode) {
    const std::size_t before = allocated();
    const std::string found = rule([&] { rig.capture(mode); });
    EXPECT_EQ(allocated(), before) << found;
    EXPECT_EQ(SavedTensorScope::depth(), 0);
    EXPECT_FALSE(capturing());
    Rig other;
    EXPECT_EQ(rule([&] { other.capture(mode); }), "");
    return found;
  }
  static std::string broken(const Rig::Forward& forward, Mode mode) {
    Rig rig;
    rig.set_forward(forward);
    return broken(rig, mode);
  }
};

// Warm-up is six calls: two modules, three runs each. The first capture is call 6.
constexpr int kFirstCapture = 6;

at::Tensor base(const Rig& rig, at::TensorList in) { return at::matmul(in[0], rig.weight); }

// W01: a saved tensor that is not strided.
struct SparseSave : torch::autograd::Function<SparseSave> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& saved) {
    context->save_for_backward({saved});
    return x * 2;
  }
  static Tensors backward(torch::autograd::AutogradContext*, const Tensors& incoming) {
    return {incoming[0] * 2, at::Tensor()};
  }
};

TEST_F(Rules, W01SavedTensorsAreStrided) {
  const at::Tensor index = at::zeros({1, 1}, at::kLong);
  const at::Tensor sparse = at::_sparse_coo_tensor_unsafe(index, at::ones({1}), {4});
  const auto forward = [&](at::TensorList in, const NamedTensors&) -> Tensors {
    return {SparseSave::apply(in[0], sparse)};
  };
  for (const Mode mode : {Mode::kArena, Mode::kCheckpoint}) EXPECT_EQ(broken(forward, mode), "W01");
  EXPECT_EQ(broken(forward, Mode::kPlacement), "") << "nothing is copied: any tensor may be saved";
}

TEST_F(Rules, W02SavedActivationsArePlain) {
  const auto forward = [](at::TensorList in, const NamedTensors&) -> Tensors {
    const at::Tensor view = in[0].detach()._neg_view();  // lazy: its bytes are not its values
    return {SparseSave::apply(in[0], view)};
  };
  for (const Mode mode : {Mode::kArena, Mode::kCheckpoint}) EXPECT_EQ(broken(forward, mode), "W02");
}

TEST_F(Rules, W03EveryRunIsTheSame) {
  for (const Mode mode : kSlotModes) {
    Rig rig;
    rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
      const at::Tensor y = base(rig, in);
      if (rig.calls % 2 == 1) return {y.t().contiguous().t()};
      return {y};
    });
    EXPECT_EQ(broken(rig, mode), "W03");
  }
  Rig saves;
  saves.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
    const at::Tensor y = base(saves, in);
    return {saves.calls % 2 == 1 ? at::tanh(y) : at::exp(at::tanh(y))};
  });
  EXPECT_EQ(broken(saves, Mode::kArena), "W03");
}

TEST_F(Rules, W04UnusedInputs) {
  for (const Mode mode : kSlotModes) {
    Rig rig;
    for (Inputs& sample : rig.samples) sample.positional.push_back(ramp(1, 0).requires_grad_(true));
    EXPECT_EQ(broken(rig, mode), "W04");
    rig.options.unused_inputs = true;
    rig.calls = 0;
    const auto set = rig.capture(mode);
    const Tensors out = set->at(0).forward(rig.samples[0]);
    EXPECT_FALSE(gradient(out[0], rig.samples[0].positional[0]).equal(at::Tensor(out[0]).detach()));
  }
}

TEST_F(Rules, W05TheSameParametersHaveGradients) {
  for (const Mode mode : kSlotModes) {
    Rig rig;
    const at::Tensor other = rig.module->register_parameter("other", ramp(kHidden, 0.1));
    // The number of parameters with gradients is always one.
    rig.set_forward([&, other](at::TensorList in, const NamedTensors&) -> Tensors {
      return {at::matmul(in[0], rig.calls % 2 == 0 ? rig.weight : other)};
    });
    const std::string found = broken(rig, mode);
    EXPECT_TRUE(found == "W05" || found == "W03") << found << ": other storages are saved too";
  }
}

TEST_F(Rules, W06OutputsArePlain) {
  for (const Mode mode : kSlotModes) {
    Rig rig;
    EXPECT_EQ(broken(
                  [](at::TensorList in, const NamedTensors&) -> Tensors {
                    return {in[0].narrow(0, 0, 1).expand({5, kHidden}) * 1,
                            in[0].narrow(0, 0, 1).expand({5, kHidden})};
                  },
                  mode),
              "W06")
        << "elements share memory";
    const at::Tensor weight = rig.weight;
    rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
      return {base(rig, in), rig.weight};
    });
    EXPECT_EQ(broken(rig, mode), "W06") << "a bare parameter";
    EXPECT_EQ(broken(
                  [](at::TensorList in, const NamedTensors&) -> Tensors {
                    return {in[0] * 2, in[0].cpu()};
                  },
                  mode),
              "W06")
        << "differentiable, on the CPU";
  }
}

TEST_F(Rules, W09AndW10BranchesOfAModuleAliasAlike) {
  for (const Mode mode : kSlotModes) {
    Rig split, merged;
    for (Rig* const rig : {&split, &merged}) {
      for (Inputs& sample : rig->samples) {
        const at::Tensor both = ramp(sample.positional[0].size(0), 1);
        sample.positional.push_back(both);
        sample.positional.push_back(both.detach());
      }
    }
    split.samples[1].positional[2] = ramp(3, 1);
    EXPECT_EQ(broken(split, mode), "W09");
    for (int b : {0}) merged.samples[b].positional[2] = ramp(3, 1);
    EXPECT_EQ(broken(merged, mode), "W10");
  }
}

TEST_F(Rules, W11AtLeastOneRun) {
  Rig rig;
  rig.options.warm_up_iterations = 0;
  EXPECT_EQ(broken(rig, Mode::kPlacement), "W11");
  EXPECT_EQ(rig.calls, 0);
}

TEST_F(Rules, W12AnInputThatBecomesState) {
  for (const Mode mode : kSlotModes) {
    Rig rig;
    rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
      if (rig.calls == 0) rig.module->register_buffer("late", in[0].detach());
      return {base(rig, in)};
    });
    EXPECT_EQ(rule([&] { rig.capture(mode); }), "W12");
  }
}

TEST_F(Rules, L04VariantsAliasTheirOutputsAlike) {
  for (const Mode mode : kSlotModes) {
    Rig rig;
    const auto views = [&](bool alias) {
      return GraphModule{rig.module,
                         [&rig, alias](at::TensorList in, const NamedTensors&) -> Tensors {
                           const at::Tensor y = base(rig, in);
                           return {y, alias ? y.narrow(0, 1, 2) : y.narrow(0, 1, 2).clone()};
                         }};
    };
    rig.modules = {views(true), views(false)};
    EXPECT_EQ(broken(rig, mode), "L04");
  }
}

TEST_F(Rules, L03L05L06L07VariantsReturnAlike) {
  for (const Mode mode : kSlotModes) {
    const auto found = [&](const Rig::Forward& small, const Rig::Forward& large) {
      Rig rig;
      const auto bind = [&](const Rig::Forward& forward) {
        return GraphModule{rig.module,
                           [&rig, forward](at::TensorList in, const NamedTensors& named) {
                             Tensors out = forward(in, named);
                             out.insert(out.begin(), base(rig, in));
                             return out;
                           }};
      };
      rig.modules = {bind(small), bind(large)};
      return broken(rig, mode);
    };
    const auto tensor = [](at::TensorList in, const NamedTensors&) -> Tensors {
      return {in[0] * 2};
    };
    const auto none = [](at::TensorList, const NamedTensors&) -> Tensors { return {at::Tensor()}; };
    const auto nothing = [](at::TensorList, const NamedTensors&) -> Tensors { return {}; };
    const auto detached = [](at::TensorList in, const NamedTensors&) -> Tensors {
      return {in[0].detach() * 2};
    };
    EXPECT_EQ(found(tensor, nothing), "L03");
    EXPECT_EQ(found(tensor, none), "L05");
    EXPECT_EQ(found(tensor, detached), "L07");
    Rig rig;
    const GraphModule state{rig.module, [&](at::TensorList in, const NamedTensors&) -> Tensors {
                              return {base(rig, in), rig.weight.view({-1})};
                            }};
    const GraphModule activation{rig.module,
                                 [&](at::TensorList in, const NamedTensors&) -> Tensors {
                                   return {base(rig, in), in[0] * 2};
                                 }};
    rig.modules = {state, activation};
    EXPECT_EQ(broken(rig, mode), "L06");
  }
}

// From the first capture on the module does something else than in its warm-up.
struct Late : Rules {
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
                     return {SparseSave::apply(SparseSave::apply(y, saved),
                                               is_late ? saved.clone() : saved)};
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
                     return {SparseSave::apply(base(rig, in), state)};
                   }),
              "K03");
  }
}

TEST_F(Late, K04OtherOutputs) {
  for (const Mode mode : kSlotModes) {
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
  for (const Mode mode : kSlotModes) {
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
  for (const Mode mode : kSlotModes) {
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

TEST_F(Rules, K09HiddenSavesAreFoundWhereTheyWouldBeLost) {
  const auto forward = [](at::TensorList in, const NamedTensors&) -> Tensors {
    return {Hidden::apply(in[0])};
  };
  for (const Mode mode : {Mode::kArena, Mode::kCheckpoint}) EXPECT_EQ(broken(forward, mode), "K09");
  EXPECT_EQ(broken(forward, Mode::kPlacement), "");
}

TEST_F(Rules, K09ACacheThatIsBornInACapture) {
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

TEST_F(Rules, WhatAModuleHoldsMayLiveOn) {
  for (const Mode mode : kSlotModes) {
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

TEST_F(Rules, PM02AnOutputInForeignMemory) {
  const at::Tensor foreign = ramp(3, 5);
  EXPECT_EQ(broken(
                [&](at::TensorList in, const NamedTensors&) -> Tensors {
                  return {in[0] * 2, foreign.narrow(0, 0, 1)};
                },
                Mode::kPlacement),
            "PM02");
}

// Captures ask for other sizes each time: after the restarts the frames are copied.
TEST_F(Rules, AFrameThatNeverSettlesIsCopied) {
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

TEST_F(Rules, C01AutocastMayNotCacheWeights) {
  const bool before = at::autocast::is_autocast_enabled(at::kCUDA);
  at::autocast::set_autocast_enabled(at::kCUDA, true);
  Rig rig;
  EXPECT_EQ(rule([&] { rig.capture(); }), "C01");
  at::autocast::set_autocast_enabled(at::kCUDA, before);
}

TEST_F(Rules, H02PlansOfThePublicPlannerNeedAnotherRuntime) {
  Rig rig;
  rig.plan.covered_counts = {1};
  for (Slot& slot : rig.plan.slots) slot.saved_arena_id = 0;
  EXPECT_EQ(rule([&] { rig.capture(); }), "PL04") << "the base order itself shares";
}

}  // namespace
}  // namespace slotgraph

// What is refused before a capture, by its rule, and that nothing is left behind: the call,
// warm-up, layout.
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/graph/testing/rig.h"
#include "core/testing/rule.h"

namespace slotgraph {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the rig's names

using Rules = RulesTest;

at::Tensor base(const Rig& rig, at::TensorList in) { return at::matmul(in[0], rig.weight); }

TEST_F(Rules, W01SavedTensorsAreStrided) {
  const at::Tensor index = at::zeros({1, 1}, at::kLong);
  const at::Tensor sparse = at::_sparse_coo_tensor_unsafe(index, at::ones({1}), {4});
  const auto forward = [&](at::TensorList in, const NamedTensors&) -> Tensors {
    return {Saves::apply(in[0], sparse)};
  };
  for (const Mode mode : {Mode::kArena, Mode::kCheckpoint}) EXPECT_EQ(broken(forward, mode), "W01");
  EXPECT_EQ(broken(forward, Mode::kPlacement), "") << "nothing is copied: any tensor may be saved";
}

TEST_F(Rules, W02SavedActivationsArePlain) {
  const auto forward = [](at::TensorList in, const NamedTensors&) -> Tensors {
    const at::Tensor view = in[0].detach()._neg_view();  // lazy: its bytes are not its values
    return {Saves::apply(in[0], view)};
  };
  for (const Mode mode : {Mode::kArena, Mode::kCheckpoint}) EXPECT_EQ(broken(forward, mode), "W02");
}

TEST_F(Rules, W03EveryRunIsTheSame) {
  for (const Mode mode : slot_modes()) {
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
  for (const Mode mode : slot_modes()) {
    Rig rig;
    for (Inputs& sample : rig.samples) sample.positional.push_back(ramp(1, 0).requires_grad_(true));
    EXPECT_EQ(broken(rig, mode), "W04");
    rig.options.unused_inputs = true;
    const auto set = rig.capture(mode);
    const at::Tensor &used = rig.samples[0].positional[0], &unused = rig.samples[0].positional[1];
    const Tensors out = set->at(0).forward(rig.samples[0]);
    const Tensors found = torch::autograd::grad({out[0]}, {used, unused}, {at::ones_like(out[0])},
                                                std::nullopt, false, true);
    const at::Tensor eager = at::matmul(at::tanh(at::matmul(used, rig.weight)), rig.weight);
    EXPECT_TRUE(same_bytes(found[0], gradient(eager, used)));
    EXPECT_FALSE(found[1].defined());
  }
}

TEST_F(Rules, W05TheSameParametersHaveGradients) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    const at::Tensor other = rig.module->register_parameter("other", ramp(kHidden, 0.1));
    // The number of parameters with gradients is always one.
    rig.set_forward([&, other](at::TensorList in, const NamedTensors&) -> Tensors {
      return {at::matmul(in[0], rig.calls % 2 == 0 ? rig.weight : other)};
    });
    EXPECT_EQ(broken(rig, mode), mode == Mode::kPlacement ? "W05" : "W03")
        << "where saved tensors are watched, those differ first";
  }
}

TEST_F(Rules, W06OutputsArePlain) {
  for (const Mode mode : slot_modes()) {
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
  for (const Mode mode : slot_modes()) {
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
  for (const Mode mode : slot_modes()) {
    Rig rig;
    rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
      if (rig.calls == 0) rig.module->register_buffer("late", in[0].detach());
      return {base(rig, in)};
    });
    EXPECT_EQ(rule([&] { rig.capture(mode); }), "W12");
  }
}

TEST_F(Rules, L04VariantsAliasTheirOutputsAlike) {
  for (const Mode mode : slot_modes()) {
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
  for (const Mode mode : slot_modes()) {
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

TEST_F(Rules, C01AutocastMayNotCacheWeights) {
  const bool before = at::autocast::is_autocast_enabled(at::kCUDA);
  at::autocast::set_autocast_enabled(at::kCUDA, true);
  Rig rig;
  EXPECT_EQ(rule([&] { rig.capture(); }), "C01");
  at::autocast::set_autocast_enabled(at::kCUDA, before);
}

TEST_F(Rules, C00EmptyModules) {
  Rig rig;
  rig.modules[1].module = nullptr;
  EXPECT_EQ(rule([&] { rig.capture(); }), "C00");
  Rig other;
  other.modules[0].forward = nullptr;
  EXPECT_EQ(rule([&] { other.capture(); }), "C00");
}

TEST_F(Rules, OB2NoSuchCanonicalVariant) {
  Rig rig;
  rig.options.canonical_variant = 2;
  EXPECT_EQ(rule([&] { rig.capture(); }), "OB2");
}

// Some plans of the public planner share arenas between frames that are live together only there.
TEST_F(Rules, PL04PlansThatShareWhileCapturing) {
  Rig rig;
  rig.plan.covered_counts = {1};
  for (Slot& slot : rig.plan.slots) slot.colour = 0;
  EXPECT_EQ(rule([&] { rig.capture(); }), "PL04");
}

}  // namespace
}  // namespace slotgraph

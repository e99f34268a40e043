// Faults of the published catalogue (faults.csv) that no other test would notice.
#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/device/device.h"
#include "properties/published_testing.h"

namespace slotgraph::properties {
namespace {

struct Faults : Published {};

Net net_of(const GraphModule& module) {
  return {distinct_plan({1}, 2, {1, -1}), {module}, [](int) { return ones({4, 4}); }};
}
std::string refusal(const GraphModule& module, Mode mode) {
  return rule([&] { net_of(module).capture(mode); });
}

// C-03, C-04: what is saved of a parameter or a buffer stays where it is. Nothing of its size lies
// in an arena or is copied, and a backward reads what it holds by then.
TEST_F(Faults, SavedParametersAndBuffersAreNotCopied) {
  for (const Mode mode : slot_modes()) {
    for (const bool parameter : {true, false}) {
      SCOPED_TRACE(parameter ? "parameter" : "buffer");
      const auto module = std::make_shared<torch::nn::Module>("state");
      at::Tensor state = parameter ? module->register_parameter("state", ramp({64, 64}))
                                   : module->register_buffer("state", ramp({64, 64}));
      const Net net(
          distinct_plan({1}, 2, {1, -1}),
          {{module, [state](at::TensorList in,
                            const NamedTensors&) { return Tensors{at::matmul(in[0], state)}; }}},
          [](int) {
            return ones({1, 64});
          });
      const auto set = net.capture(mode);
      EXPECT_LT(set->memory().arena_bytes + set->memory().copied_bytes, state.nbytes());
      const auto gradient = [&](double factor) {
        const at::Tensor x = ramp({1, 64}).requires_grad_(true);
        const Tensors y = set->at(0).forward({{x}, {}});
        {
          const at::NoGradGuard none;
          state.mul_(factor);
        }
        return torch::autograd::grad({y[0]}, {x}, {at::ones_like(y[0])})[0].clone();
      };
      const at::Tensor once = gradient(1);
      EXPECT_TRUE(same_bytes(gradient(2), once * 2));
    }
  }
}

// C-06: storages without bytes all have address 0, which is no identity.
TEST_F(Faults, EmptyParametersAndSavesAreNotOneStorage) {
  for (const Mode mode : slot_modes()) {
    const auto module = std::make_shared<torch::nn::Module>("empty");
    const at::Tensor empty = module->register_parameter("empty", ramp({0}));
    const at::Tensor weight = module->register_parameter("weight", ramp({4, 4}));
    Replay replay(net_of({module,
                          [=](at::TensorList in, const NamedTensors&) -> Tensors {
                            const at::Tensor none = in[0].narrow(0, 0, 0).reshape({0}) * empty;
                            return {in[0] * weight + none.sum()};
                          }}),
                  mode);
    replay.run({1, -1, 2, -2});
  }
}

// C-12: every second run saves another tensor. kPlacement sees no saves, but other allocations.
TEST_F(Faults, SavesThatAlternateAreRefused) {
  for (const Mode mode : {Mode::kArena, Mode::kCheckpoint}) {
    int calls = 0;
    EXPECT_EQ(refusal(unary([&](const at::Tensor& x) {
                        return ++calls % 2 == 0 ? at::sin(x * 2) : at::sigmoid(x * 2);
                      }),
                      mode),
              "W03");
  }
}

// C-13: another parameter is used every second time; their number is the same.
TEST_F(Faults, ParametersUsedInTurnAreRefused) {
  for (const Mode mode : slot_modes()) {
    const auto module = std::make_shared<torch::nn::Module>("turns");
    const Tensors weights{module->register_parameter("even", ramp({4, 4})),
                          module->register_parameter("odd", ramp({4, 4}))};
    int calls = 0;
    EXPECT_EQ(refusal({module,
                       [&](at::TensorList in, const NamedTensors&) {
                         return Tensors{in[0] * weights[++calls % 2]};
                       }},
                      mode),
              mode == Mode::kPlacement ? "W05" : "W03");
  }
}

// G-12: samples of other sizes over one buffer. Where survivors are born in the arenas, inputs of
// all variants share one place; copies keep one place for each size, as the published runtime
// does.
TEST_F(Faults, InputsOfAllVariantsShareOnePlace) {
  const at::Tensor buffer = at::ones({2048}, at::kCUDA);
  const auto live_bytes = [&](Mode mode, std::int64_t smaller) {
    const Net net(distinct_plan({1}, 2, {1, -1}),
                  {unary([](const at::Tensor& x) { return x * x; })}, [&](int branch) -> Inputs {
                    const std::int64_t size = branch == 0 ? 2048 : smaller;
                    return {{buffer.narrow(0, 0, size).detach().requires_grad_(true)}, {}};
                  });
    return net.capture(mode)->memory().live_bytes;
  };
  for (const Mode mode : slot_modes()) {
    const std::size_t extra = mode == Mode::kPlacement ? 0 : 1024 * sizeof(float);
    EXPECT_EQ(live_bytes(mode, 1024), live_bytes(mode, 2048) + extra) << static_cast<int>(mode);
  }
}

// J-07: the captured gradient is the incoming one itself, or a view of it.
TEST_F(Faults, GradientsThatAreTheIncomingOneAreCopied) {
  for (const Mode mode : slot_modes()) {
    Replay replay(net_of(unary([](const at::Tensor& x) { return x + 0; })), mode);
    replay.run({1, -1, 2, -2});
    Replay view(net_of(unary([](const at::Tensor& x) { return x.transpose(0, 1) + 0; })), mode);
    view.run({1, -1, 2, -2});
  }
}

// J-18: static places, those of incoming gradients too, lie in the pools of the call and exist
// before a capture begins: a call leaves nothing anywhere else.
TEST_F(Faults, ACallTakesNoMemoryOutsideItsPools) {
  for (const Mode mode : graph_modes()) {
    const Net net(distinct_plan({1}, 2, {1, 1, -1, -1}),
                  {unary([](const at::Tensor& x) { return x * x; })},
                  [](int) { return ones({4096}); });
    const std::size_t before = testing::DeviceTest::allocated();
    const auto set = net.capture(mode);
    EXPECT_EQ(testing::DeviceTest::allocated() - before,
              set->memory().live_bytes + device::capabilities().graph_generator_bytes)
        << static_cast<int>(mode);
  }
}

// the address is the static input's, the strides are not.
TEST_F(Faults, ATransposedViewOfTheStaticInputIsCopied) {
  for (const Mode mode : slot_modes()) {
    const Net net = net_of(unary([](const at::Tensor& x) { return x * 2; }));
    const auto set = net.capture(mode);
    const at::Tensor place = set->at(0).static_inputs()[0].detach();
    place.copy_(ramp({4, 4}));
    const at::Tensor expected = (ramp({4, 4}) * 2).t();
    EXPECT_TRUE(same_bytes(
        set->at(0).forward({{place.t().requires_grad_(true)}, {}})[0].contiguous(), expected));
  }
}

// an incoming gradient that is missing counts as zeros, not as those of the last backward.
TEST_F(Faults, MissingIncomingGradientsAreZeros) {
  for (const Mode mode : slot_modes()) {
    const Net net = net_of(stateless([](at::TensorList in, const NamedTensors&) -> Tensors {
      return {in[0] * in[0], at::sin(in[0])};
    }));
    Replay replay(net, mode);
    replay.run({1, -1});
    const at::Tensor x = ramp({4, 4}).requires_grad_(true);
    const at::Tensor y = replay.set().at(0).forward({{x}, {}})[0];
    const at::Tensor found = torch::autograd::grad({y}, {x}, {at::ones_like(y)})[0];
    EXPECT_TRUE(same_bytes(found, x.detach() * 2));
  }
}

// named inputs of equal sizes in another order than at the capture.
TEST_F(Faults, NamedInputsAreFoundByName) {
  for (const Mode mode : slot_modes()) {
    Net net = net_of(stateless([](at::TensorList in, const NamedTensors& named) -> Tensors {
      return {in[0] * named[0].second - named[1].second};
    }));
    for (Inputs& sample : net.samples)
      sample.named = {{"scale", ramp({4, 4})}, {"shift", ramp({4, 4})}};
    const auto set = net.capture(mode);
    const at::Tensor x = ramp({4, 4}, 1), scale = ramp({4, 4}, 2), shift = ramp({4, 4}, 3);
    const Inputs swapped{{x.clone().requires_grad_(true)}, {{"shift", shift}, {"scale", scale}}};
    EXPECT_TRUE(same_bytes(set->at(0).forward(swapped)[0], x * scale - shift));
  }
}

// a module in another mode than at the capture runs eagerly.
TEST_F(Faults, AModuleThatNoLongerTrainsRunsEagerly) {
  for (const Mode mode : slot_modes()) {
    const auto module = std::make_shared<torch::nn::Module>("mode");
    const Net net = net_of({module, [=](at::TensorList in, const NamedTensors&) {
                              return Tensors{in[0] * (module->is_training() ? 2 : 3)};
                            }});
    const auto set = net.capture(mode);
    module->eval();
    EXPECT_TRUE(same_bytes(set->at(0).forward(net.samples[0])[0], ramp({4, 4}, 3) * 0 + 3));
    module->train();
    EXPECT_TRUE(same_bytes(set->at(0).forward(net.samples[0])[0], ramp({4, 4}, 3) * 0 + 2));
  }
}

// eager would refuse the backward, if the frame had saved the output. Nobody can tell by
// then, so the contract forbids the write, and checking mode finds it.
TEST_F(Faults, AnOutputThatIsWrittenBeforeItsBackwardIsFoundByChecking) {
  for (const Mode mode : slot_modes()) {
    const Net net = net_of(unary([](const at::Tensor& x) { return at::tanh(x); }));
    const auto set = net.capture(mode, {.checking = true});
    const at::Tensor x = ramp({4, 4}).requires_grad_(true);
    const auto backward = [&](const std::function<void(at::Tensor)>& use) {
      const Tensors y = set->at(0).forward({{x}, {}});
      const at::Tensor incoming = at::ones_like(y[0]);
      use(y[0].detach());
      const std::string found = rule([&] { torch::autograd::grad({y[0]}, {x}, {incoming}); });
      set->at(0).release();
      return found;
    };
    EXPECT_EQ(backward([](const at::Tensor& y) { (void)at::sin(y); }), "");
    EXPECT_EQ(backward([](at::Tensor y) { y.mul_(2); }), "P11");
    EXPECT_EQ(backward([](const at::Tensor& y) { y.narrow(0, 0, 1).zero_(); }), "P11") << "a view";
    EXPECT_EQ(backward([](const at::Tensor&) {}), "") << "the next flight is another one";
  }
}

// Keeps an activation in the autograd graph, which the frame saves too: a copied frame's original
// then lives in the pool until the frame's backward.
at::Tensor keeping(const at::Tensor& x) {
  const at::Tensor leaf = at::tanh(x).detach().requires_grad_(true);
  return x * 2 + leaf * leaf;
}

// such originals belong to the checkpoints. X-22: those of the first variant, once its
// backward is captured, are owned by checkpoints alone, and are needed until the last switch of the
// event.
TEST_F(Faults, OriginalsThatAutogradKeepsAreOwnedUntilTheLastSwitch) {
  for (const Mode mode : slot_modes()) {
    Replay replay({distinct_plan({1}, 3, {1, 1, -1, -1}),
                   {unary(keeping)},
                   [](int) {
                     return ones({4, 4});
                   }},
                  mode);
    replay.run({1, 2, -1, -2, 3, 6, -6, -3, 5, 4, -5, -4});
  }
}

// whatever later variants leave, the pool is set back to what the first one left. Each block
// here has a segment of its own.
TEST_F(Faults, VariantsAfterTheFirstLeaveNothingInThePool) {
  const auto use = [](int variants) {
    const Net net(distinct_plan({1}, variants, {1, 1, -1, -1}), {unary(keeping)},
                  [](int) { return ones({3 << 20}); });
    return net.capture(Mode::kCheckpoint, {.warm_up_iterations = 1})->memory();
  };
  const MemoryUse two = use(2), four = use(4);
  EXPECT_EQ(four.reserved_bytes, two.reserved_bytes);
  EXPECT_EQ(four.live_bytes, two.live_bytes);
}

}  // namespace
}  // namespace slotgraph::properties

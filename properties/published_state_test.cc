// The tests of the published runtime about process state, refusals and memory. Those that are not
// here: published_test.cc.
#include <ATen/Functions.h>
#include <ATen/SavedTensorHooks.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/autograd/autograd.h>

#include <stdexcept>

#include "core/device/device.h"
#include "core/graph/state/process_state.h"
#include "core/memory/allocator_config.h"
#include "core/memory/forwarding_allocator.h"
#include "core/models/blocks.h"
#include "properties/published_testing.h"

namespace slotgraph::properties {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

constexpr std::int64_t kElements = 16;

Net net_of(const GraphModule& module, int variants = 2) {
  return {distinct_plan({1}, variants, {1, -1}), {module}, [](int) { return ones({kElements}); }};
}
at::Tensor squared(const at::Tensor& x) { return x * x; }

// The capture is refused with the rule in every mode and leaves nothing behind, so that another one
// works.
void expect_refused(const Net& net, const std::string& expected, const Options& options = {}) {
  for (const Mode mode : slot_modes()) {
    SCOPED_TRACE(static_cast<int>(mode));
    const std::size_t before = testing::DeviceTest::allocated();
    EXPECT_EQ(rule([&] { net.capture(mode, options); }), expected);
    EXPECT_FALSE(capturing());
    EXPECT_EQ(testing::DeviceTest::allocated(), before);
    Replay(net_of(unary(squared)), mode).run({1, -1});
  }
}

// A module that throws in its `failing`th call, with a parameter.
struct Failing {
  explicit Failing(int failing) {
    weight = module->register_parameter("weight", ramp({kElements}));
    weight.mutable_grad() = at::full_like(weight, 7).detach();
    buffer = module->register_buffer("buffer", ramp({kElements}));
    net = std::make_unique<Net>(
        net_of({module, [this, failing](at::TensorList in, const NamedTensors&) -> Tensors {
                  const at::NoGradGuard none;
                  EXPECT_TRUE(capturing());
                  buffer.add_(1);
                  const at::AutoGradMode grad(true);
                  const at::Tensor noise = at::bernoulli(in[0].detach(), 0.5);
                  if (++calls == failing) throw std::runtime_error("injected");
                  gradient_was_there = gradient_was_there || weight.grad().defined();
                  return {in[0] * weight * noise};
                }}));
  }
  std::shared_ptr<torch::nn::Module> module = std::make_shared<torch::nn::Module>("failing");
  at::Tensor weight, buffer;
  std::unique_ptr<Net> net;
  int calls = 0;
  bool gradient_was_there = false;
};

// Call 2 is in warm-up, call 7 in the first capture. Ours never clears .grad, since it uses
// autograd::grad, which does not touch it.
TEST_F(Published, Row10_2_graph_capture_contexts_restore_process_state_on_error) {
  for (const Mode mode : slot_modes()) {
    for (const int call : {2, 7}) {
      Failing failing(call);
      const at::Tensor gradient = failing.weight.grad(), buffer = failing.buffer.clone();
      const at::Tensor random = device::generator().get_state();
      const std::size_t before = testing::DeviceTest::allocated();
      EXPECT_THROW(failing.net->capture(mode), std::runtime_error);
      EXPECT_EQ(failing.calls, call);
      EXPECT_TRUE(failing.weight.grad().is_same(gradient));
      EXPECT_TRUE(same_bytes(gradient, at::full_like(gradient, 7)));
      EXPECT_TRUE(same_bytes(failing.buffer, buffer));
      EXPECT_TRUE(same_bytes(device::generator().get_state(), random));
      EXPECT_EQ(testing::DeviceTest::allocated(), before);
      EXPECT_FALSE(capturing());
      Replay(net_of(unary(squared)), mode).run({1, -1});
    }
  }
}

// Ours are the hooks for saved tensors.
TEST_F(Published, Row10_2_temporary_forward_hooks_are_removed_on_error) {
  for (const Mode mode : slot_modes()) {
    for (const int call : {2, 7}) {
      Failing failing(call);
      EXPECT_THROW(failing.net->capture(mode), std::runtime_error);
      EXPECT_TRUE(at::SavedTensorDefaultHooks::get_tls_state().stack.empty());
      EXPECT_TRUE(at::GradMode::is_enabled());
    }
  }
}

TEST_F(Published, Row10_2_allocator_settings_guard_restores_once) {
  const std::string before = "expandable_segments:False";
  const std::string given = "garbage_collection_threshold:0.5,expandable_segments:True";
  for (const Mode mode : slot_modes()) {
    for (const bool fail : {false, true}) {
      std::string inside;
      Net net = net_of(unary([&](const at::Tensor& x) {
        inside = c10::CachingAllocator::getAllocatorSettings();
        if (fail) throw std::runtime_error("injected");
        return squared(x);
      }));
      // The emulated device has no expandable segments: an allocation with this setting would fail.
      set_allocator_config(given);
      bool failed = false;
      std::unique_ptr<CallableSet> set;
      try {
        set = net.capture(mode);
      } catch (const std::exception&) {
        failed = true;
      }
      const std::string after = c10::CachingAllocator::getAllocatorSettings();
      set_allocator_config(before);
      EXPECT_EQ(failed, fail);
      EXPECT_EQ(inside, "garbage_collection_threshold:0.5,expandable_segments:False");
      EXPECT_EQ(after, given);
    }
  }
}

TEST_F(Published, Row10_2_make_graphed_callables_restores_process_state_on_error) {
  for (const Mode mode : slot_modes()) {
    Failing failing(2);
    std::vector<std::string> log;
    Options options;
    options.before_warm_up = [&](int module) {
      EXPECT_TRUE(capturing());
      log.push_back("pre " + std::to_string(module));
    };
    options.after_warm_up = [&](int module) { log.push_back("post " + std::to_string(module)); };
    EXPECT_THROW(failing.net->capture(mode, options), std::runtime_error);
    EXPECT_EQ(log, (std::vector<std::string>{"pre 0", "post 0"}));
    EXPECT_FALSE(capturing());
    // A hook before that throws has no hook after it (Y-20).
    log.clear();
    options.before_warm_up = [&](int) { throw std::runtime_error("injected"); };
    EXPECT_THROW(failing.net->capture(mode, options), std::runtime_error);
    EXPECT_TRUE(log.empty());
    // In order of modules, once for each, though frames are two.
    const Net good(distinct_plan({1}, 2, {1, -1, 1, -1}), {unary(squared)},
                   [](int) { return ones({kElements}); });
    options.before_warm_up = [&](int module) { log.push_back("pre " + std::to_string(module)); };
    good.capture(mode, options);
    EXPECT_EQ(log, (std::vector<std::string>{"pre 0", "post 0", "pre 1", "post 1"}));
  }
}

TEST_F(Published, Row10_2_make_graphed_callables_restores_wrappers_on_preparation_error) {
  Failing failing(1);
  failing.module->eval();
  expect_refused(*failing.net, "C11");
  EXPECT_EQ(failing.calls, 0);
}

TEST_F(Published, NestedCapturesAreRefused) {
  for (const Mode mode : slot_modes()) {
    const Net inner = net_of(unary(squared));
    std::string found;
    const Net outer = net_of(unary([&](const at::Tensor& x) {
      if (capturing()) found = rule([&] { inner.capture(mode); });
      return squared(x);
    }));
    Replay(outer, mode).run({1, -1});
    EXPECT_EQ(found, "G01");
  }
}

struct OtherAllocator : ForwardingAllocator {
  using ForwardingAllocator::ForwardingAllocator;
  std::string name() override { return "other"; }
};

TEST_F(Published, Row10_3_rejects_non_native_allocator) {
  auto* const native = caching::get();
  static OtherAllocator other(native);
  const Net net = net_of(unary(squared));
  for (const Mode mode : slot_modes()) {
    caching::allocator.store(&other);
    const std::string found = rule([&] { net.capture(mode); });
    caching::allocator.store(native);
    EXPECT_EQ(found, "C07");
    native->enable(false);  // the environment: core/graph/allocator_backend_test.cc
    EXPECT_EQ(rule([&] { net.capture(mode); }), "C07");
    native->enable(true);
  }
}

// A bare parameter stands for the subclass, as C-23 says; a view of it is fine (foreign_views).
TEST_F(Published, Row10_3_rejects_public_cuda_tensor_subclass_outputs) {
  const auto module = std::make_shared<torch::nn::Module>("bare");
  const at::Tensor weight = module->register_parameter("weight", ramp({kElements}));
  expect_refused(net_of({module,
                         [weight](at::TensorList in, const NamedTensors&) {
                           return Tensors{squared(in[0]), weight};
                         }}),
                 "W06");
}

// Fails the first switch to a checkpoint, before or after the allocator has set its state.
struct FailingAllocator : ForwardingAllocator {
  using ForwardingAllocator::ForwardingAllocator;
  caching::CheckpointDelta setCheckpointPoolState(
      c10::DeviceIndex device, std::shared_ptr<caching::AllocatorState> state) override {
    const bool first = ++calls == 1;
    if (first && !after) throw std::runtime_error("injected before");
    auto delta = ForwardingAllocator::setCheckpointPoolState(device, std::move(state));
    if (first) throw std::runtime_error("injected after");
    return delta;
  }
  bool after = false;
  int calls = 0;
};

// "detach" cannot fail here: the helper is linked, and frees by a call that does not throw.
TEST_F(Published, Row10_3_checkpoint_rolls_back_restore_failure) {
  auto* const native = caching::get();
  static FailingAllocator failing(native);
  for (const bool after : {false, true}) {
    const Net net(distinct_plan({1}, 2, {1, -1}), {unary([](const at::Tensor& x) {
                    return at::cat({x * x, at::sin(x), at::cos(x)}).narrow(0, 0, 4096) * 3;
                  })},
                  [](int) { return ones({4096}); });
    const std::size_t before = testing::DeviceTest::allocated();
    failing.after = after;
    failing.calls = 0;
    caching::allocator.store(&failing);
    std::string text;
    try {
      net.capture(Mode::kCheckpoint, {.unused_inputs = true});
    } catch (const std::runtime_error& error) {
      text = error.what();
    }
    caching::allocator.store(native);
    EXPECT_EQ(text, after ? "injected after" : "injected before") << "the original error";
    EXPECT_GE(failing.calls, 2) << "the rollback sets the state too";
    EXPECT_EQ(testing::DeviceTest::allocated(), before);
    Replay(net, Mode::kCheckpoint, {.unused_inputs = true}).run({1, -1, 2, -2});
  }
}

// The second output of each variant: of its own, or of the first one's storage. Ours compares the
// storages only: offsets may differ, as sizes may; frames of kPlacement are compared too.
TEST_F(Published, Row10_4_rejects_branch_output_alias_mismatch) {
  const auto outputs = [](bool alias) {
    return stateless([alias](at::TensorList in, const NamedTensors&) -> Tensors {
      const at::Tensor y = in[0] * in[0];
      return {y, alias ? y.narrow(0, 8, 8) : y.narrow(0, 8, 8) * 1};
    });
  };
  for (const bool first : {false, true}) {
    Net net = net_of(outputs(first));
    net.modules[1] = outputs(!first);
    expect_refused(net, "L04");
  }
}

TEST_F(Published, Row10_4_rejects_warmup_input_alias_merge) {
  for (const bool merge : {true, false}) {
    Net net(distinct_plan({1}, 1, {1, 1, -1, -1}),
            {stateless(
                [](at::TensorList in, const NamedTensors&) -> Tensors { return {in[0] * in[1]}; })},
            [](int) {
              Inputs sample = ones({kElements});
              sample.positional.push_back(ones({kElements}).positional[0]);
              return sample;
            });
    Inputs& aliased = net.samples[merge ? 1 : 0];
    aliased.positional[1] = aliased.positional[0];
    expect_refused(net, merge ? "W10" : "W09");
  }
}

TEST_F(Published, Row10_4_rejects_user_inputs_aliased_to_module_state) {
  for (const bool parameter : {true, false}) {
    for (const int owner : {0, 1}) {  // 1: rejects_user_inputs_aliased_to_other_callable_state
      Net net = net_of(unary(squared));
      const auto module = std::make_shared<torch::nn::Module>("state");
      const at::Tensor state = parameter ? module->register_parameter("state", ramp({kElements}))
                                         : module->register_buffer("state", ramp({kElements}));
      net.modules[owner].module = module;
      net.samples[0].positional[0] = state.detach().view({-1}).requires_grad_(true);
      expect_refused(net, "C21");
    }
  }
}

TEST_F(Published, Row10_4_rejects_input_promoted_to_module_state_during_warmup) {
  for (const Mode mode : slot_modes()) {
    const auto module = std::make_shared<torch::nn::Module>("lazy");
    const Net net = net_of({module, [module](at::TensorList in, const NamedTensors&) -> Tensors {
                              if (module->buffers().empty())
                                module->register_buffer("late", in[0].detach());
                              return {in[0] * in[0]};
                            }});
    const std::string found = rule([&] { net.capture(mode); });
    EXPECT_EQ(found, "W12");
    EXPECT_FALSE(capturing());
  }
}

TEST_F(Published, Row10_4_rejects_non_tensor_sample_kwargs) {
  Net net = net_of(unary(squared));
  net.samples[1].named = {{"flag", at::Tensor()}};
  expect_refused(net, "C20");
}

TEST_F(Published, FaultsOfWarmUpAreRefused) {
  expect_refused(net_of(unary(squared)), "W11", {.warm_up_iterations = 0});
  const auto module = std::make_shared<torch::nn::Module>("unused");
  const at::Tensor weight = module->register_parameter("weight", ramp({kElements}));
  expect_refused(
      net_of({module, [weight](at::TensorList in,
                               const NamedTensors&) { return Tensors{in[0].detach() * weight}; }}),
      "W04");
  // Variants of a frame must agree on dtypes and on the wish for gradients (B-03, B-04, B-05).
  for (const int other : {0, 1, 2}) {
    Net net = net_of(stateless([](at::TensorList in, const NamedTensors&) -> Tensors {
      return {in[0] * in[0], in[0] * 2};
    }));
    net.modules[1] = stateless([other](at::TensorList in, const NamedTensors&) -> Tensors {
      return {in[0] * in[0], other == 0   ? (in[0] * 2).to(at::kDouble)
                             : other == 1 ? (in[0] * 2).detach()
                                          : at::Tensor()};
    });
    expect_refused(net, other == 2 ? "L05" : "L07");
  }
}

// B-07: state in one variant, a tensor in the other.
TEST_F(Published, FaultModuleStateInOneVariantOnlyIsRefused) {
  const auto module = std::make_shared<torch::nn::Module>("state");
  const at::Tensor buffer = module->register_buffer("buffer", ramp({kElements}));
  const auto returning = [&](bool state) {
    return GraphModule{module, [=](at::TensorList in, const NamedTensors&) -> Tensors {
                         return {in[0] * in[0], state ? buffer.view({-1}) : buffer * 1};
                       }};
  };
  Net net = net_of(returning(true));
  net.modules[1] = returning(false);
  expect_refused(net, "L06");
}

TEST_F(Published, Probe10_6_lifecycle) {
  for (const Mode mode : slot_modes()) {
    for (const bool reset_first : {true, false}) {
      const std::size_t before = testing::DeviceTest::allocated();
      {
        const Net net = net_of(find_block("mlp").make({16, at::kFloat}, 1), 3);
        Net sized = net;
        for (Inputs& sample : sized.samples) sample = ones({4, 16});
        Replay replay(sized, mode);
        replay.run({1, -1, 2, -2});
        replay.forward(2);
        if (reset_first) {
          for (const int branch : {1, 2, 0}) replay.set().at(branch).reset();
          EXPECT_EQ(rule([&] { replay.set().at(0).forward(sized.samples[0]); }), "P09");
        }
      }
      EXPECT_EQ(testing::DeviceTest::allocated(), before);
    }
  }
}

}  // namespace
}  // namespace slotgraph::properties

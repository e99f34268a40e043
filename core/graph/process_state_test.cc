// What a call leaves as it was: before and after, on success and on failures.
#include "core/graph/state/process_state.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/autograd/custom_function.h>

#include <stdexcept>
#include <thread>

#include "core/device/device.h"
#include "core/graph/run/saved_hooks.h"
#include "core/graph/testing/rig.h"
#include "core/memory/allocator_config.h"
#include "core/memory/private_pool.h"
#include "core/testing/rule.h"

namespace slotgraph {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the rig's names

// A snapshot of everything that a call may change.
struct Snapshot {
  at::Tensor generator, buffer, weight, main_grad, grad_content;
  const void* grad;
  bool weight_requires_grad, sample_requires_grad, grad_mode, autocast, is_capturing;
  std::string settings;
  bool expandable;
  c10::cuda::CUDAStream stream;
  int hooks;
  std::size_t weight_hooks;
  std::size_t allocated;

  static Snapshot take(const Rig& rig, const at::Tensor& main_grad) {
    const at::Tensor& sample = rig.samples[0].positional[0];
    const at::Tensor grad = rig.weight.grad();
    return {device::generator().get_state().clone(),
            rig.buffer.cpu(),
            rig.weight.detach().cpu(),
            main_grad.cpu(),
            grad.defined() ? grad.cpu() : grad,
            grad.unsafeGetTensorImpl(),
            rig.weight.requires_grad(),
            sample.requires_grad(),
            at::GradMode::is_enabled(),
            at::autocast::is_autocast_enabled(at::kCUDA),
            capturing(),
            c10::CachingAllocator::getAllocatorSettings(),
            expandable_segments_on(),
            c10::cuda::getCurrentCUDAStream(),
            SavedTensorScope::depth(),
            torch::autograd::impl::hooks(rig.weight).size(),
            DeviceTest::allocated()};
  }
};

void expect_equal(const Snapshot& now, const Snapshot& before) {
  EXPECT_TRUE(same_bytes(now.generator, before.generator));
  EXPECT_TRUE(same_bytes(now.buffer, before.buffer));
  EXPECT_TRUE(same_bytes(now.weight, before.weight));
  EXPECT_TRUE(same_bytes(now.main_grad, before.main_grad));
  EXPECT_EQ(now.grad, before.grad) << "the same .grad object";
  EXPECT_EQ(now.grad_content.defined(), before.grad_content.defined());
  const bool same_grad =
      !before.grad_content.defined() || same_bytes(now.grad_content, before.grad_content);
  EXPECT_TRUE(same_grad);
  EXPECT_EQ(now.weight_requires_grad, before.weight_requires_grad);
  EXPECT_EQ(now.sample_requires_grad, before.sample_requires_grad);
  EXPECT_EQ(now.grad_mode, before.grad_mode);
  EXPECT_EQ(now.autocast, before.autocast);
  EXPECT_EQ(now.is_capturing, before.is_capturing);
  EXPECT_EQ(now.settings, before.settings);
  EXPECT_EQ(now.expandable, before.expandable);
  EXPECT_EQ(now.stream, before.stream);
  EXPECT_EQ(now.hooks, before.hooks);
  EXPECT_EQ(now.weight_hooks, before.weight_hooks);
  EXPECT_EQ(now.allocated, before.allocated);
}

// Adds the weight's gradient to a tensor that only its closure knows.
struct Accumulate : torch::autograd::Function<Accumulate> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight, const at::Tensor& main_grad) {
    context->save_for_backward({x, weight});
    context->saved_data["main_grad"] = main_grad;
    return at::matmul(x, weight);
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& incoming) {
    const Tensors saved = context->get_saved_variables();
    context->saved_data["main_grad"].toTensor().add_(at::matmul(saved[0].t(), incoming[0]));
    return {at::matmul(incoming[0], saved[1].t()), at::Tensor(), at::Tensor()};
  }
};

struct ProcessState : DeviceTest {};

// A module that changes everything it can, and fails at call `fail_at` (-1: never).
void spoil_and_compare(Mode mode, int fail_at) {
  Rig rig;
  const at::Tensor main_grad = ramp(kHidden, 3);
  rig.weight.mutable_grad() = ramp(kHidden, 7);
  const at::Tensor spare = ramp(kHidden, 9);
  // On the CPU: no operator on the device writes it.
  const at::Tensor counter = rig.module->register_buffer("counter", at::zeros({1}));
  rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
    EXPECT_TRUE(capturing());
    const at::Tensor noise = at::empty({4}, at::kCUDA).uniform_();
    {
      const at::NoGradGuard no_grad;
      rig.buffer.add_(1);
      at::Tensor(counter).add_(1);
      rig.weight.grad().add_(1);
    }
    rig.weight.mutable_grad() = spare;
    if (rig.calls == fail_at) throw std::runtime_error("planted");
    const at::Tensor x = Accumulate::apply(in[0], rig.weight, main_grad);
    c10::cuda::setCurrentCUDAStream(c10::cuda::getCurrentCUDAStream());
    return {at::tanh(x) + noise.sum() * 0};
  });
  const Snapshot before = Snapshot::take(rig, main_grad);
  std::unique_ptr<CallableSet> set;
  if (fail_at >= 0) {
    EXPECT_THROW(set = rig.capture(mode), std::runtime_error);
  } else {
    set = rig.capture(mode);
    set.reset();
  }
  expect_equal(Snapshot::take(rig, main_grad), before);
  EXPECT_EQ(counter.item<float>(), 0);
}

TEST_F(ProcessState, IsWhatItWasAfterSuccessAndAfterAFailureAtEveryCall) {
  for (const Mode mode : graph_modes()) {
    for (int fail_at = -1; fail_at < 10; ++fail_at) {
      SCOPED_TRACE(fail_at);
      spoil_and_compare(mode, fail_at);
    }
  }
}

TEST_F(ProcessState, ABackwardThatThrowsIsUndone) {
  struct Throws : torch::autograd::Function<Throws> {
    static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                              bool fail) {
      context->saved_data["fail"] = fail;
      return x * 2;
    }
    static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& incoming) {
      if (context->saved_data["fail"].toBool()) throw std::runtime_error("planted");
      return {incoming[0] * 2, at::Tensor()};
    }
  };
  for (const Mode mode : slot_modes()) {
    for (const int fail_at : {0, 4, 6, 7, 8, 9}) {
      Rig rig;
      rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
        return {Throws::apply(in[0], rig.calls == fail_at)};
      });
      const Snapshot before = Snapshot::take(rig, rig.buffer);
      EXPECT_ANY_THROW(rig.capture(mode)) << fail_at;
      expect_equal(Snapshot::take(rig, rig.buffer), before);
      Rig other;
      EXPECT_EQ(rule([&] { other.capture(mode); }), "");
    }
  }
}

TEST_F(ProcessState, HooksRunOnceForEachModuleWhateverHappens) {
  for (const Mode mode : slot_modes()) {
    std::vector<std::string> log;
    const auto run = [&](int fail_call, int fail_before, int fail_after) {
      log.clear();
      Rig rig([&](int call) {
        if (call == fail_call) throw std::runtime_error("planted");
      });
      rig.options.before_warm_up = [&](int module) {
        log.push_back("before " + std::to_string(module));
        if (module == fail_before) throw std::runtime_error("planted");
      };
      rig.options.after_warm_up = [&](int module) {
        log.push_back("after " + std::to_string(module));
        if (module == fail_after) throw std::runtime_error("planted");
      };
      try {
        rig.capture(mode);
      } catch (const std::runtime_error&) {
      }
    };
    using Log = std::vector<std::string>;
    run(-1, -1, -1);
    EXPECT_EQ(log, (Log{"before 0", "after 0", "before 1", "after 1"}));
    run(1, -1, -1);
    EXPECT_EQ(log, (Log{"before 0", "after 0"})) << "a warm-up that throws";
    run(-1, 0, -1);
    EXPECT_EQ(log, Log{"before 0"});
    run(-1, -1, 0);
    EXPECT_EQ(log, (Log{"before 0", "after 0"})) << "not twice";
  }
}

TEST_F(ProcessState, RandomNumbersAreDrawnAsEagerDraws) {
  at::Generator other = device::generator().clone();
  for (const Mode mode : slot_modes()) {
    Rig rig;
    rig.options.generators = {other};
    rig.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
      at::Tensor a = at::empty_like(in[0]).detach(), b = at::empty_like(in[0]).detach();
      a.uniform_();
      b.uniform_(0, 1, other);
      return {in[0] * a + b};
    });
    const auto seed = [&] {
      for (at::Generator generator : {device::generator(), other}) generator.set_current_seed(5);
    };
    seed();
    const auto set = rig.capture(mode);
    Tensors found, truth;
    for (int i = 0; i < 3; ++i) {
      found.push_back(set->at(0).forward(rig.samples[0])[0].detach().clone());
      set->at(0).release();
    }
    const at::Tensor after = other.get_state().clone(),
                     after_default = device::generator().get_state();
    seed();
    for (int i = 0; i < 3; ++i)
      truth.push_back(rig.modules[0].forward(rig.samples[0].positional, {})[0]);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bytes(found[i], truth[i])) << i;
    EXPECT_TRUE(same_bytes(other.get_state(), after));
    EXPECT_TRUE(same_bytes(device::generator().get_state(), after_default));
  }
}

TEST_F(ProcessState, ExpandableSegmentsAreOffWhileACallRunsAndOnAgainAfterIt) {
  const std::string before = c10::CachingAllocator::getAllocatorSettings();
  const std::string on = "garbage_collection_threshold:0.9,expandable_segments:True";
  for (const Mode mode : slot_modes()) {
    Rig rig([](int) { EXPECT_FALSE(expandable_segments_on()); });
    set_allocator_config(on);
    ASSERT_TRUE(expandable_segments_on());
    const auto set = rig.capture(mode);
    EXPECT_TRUE(expandable_segments_on());
    EXPECT_EQ(c10::CachingAllocator::getAllocatorSettings(), on);
    set_allocator_config("expandable_segments:False");
  }
  set_allocator_config(before);
}

TEST(AllocatorSettings, OneKeyIsReplacedAndBracketsAreKept) {
  EXPECT_EQ(without_expandable_segments("expandable_segments:True"), "expandable_segments:False");
  EXPECT_EQ(without_expandable_segments(""), "expandable_segments:False");
  EXPECT_EQ(without_expandable_segments("a:[1:2,3:4], expandable_segments : true ,b:1"),
            "a:[1:2,3:4],expandable_segments:False,b:1");
}

TEST_F(ProcessState, ConcurrentAndNestedCallsAreRefused) {
  Rig inner, outer;
  std::string nested, concurrent;
  outer.set_forward([&](at::TensorList in, const NamedTensors&) -> Tensors {
    nested = rule([&] { inner.capture(); });
    std::thread([&] {
      EXPECT_FALSE(capturing());
      concurrent = rule([&] { inner.capture(); });
    }).join();
    return {in[0] * 2};
  });
  EXPECT_EQ(rule([&] { outer.capture(); }), "");
  EXPECT_EQ(nested, "G01");
  EXPECT_EQ(concurrent, "G01");
  EXPECT_EQ(rule([&] { inner.capture(); }), "") << "the turn was given back";
}

}  // namespace
}  // namespace slotgraph

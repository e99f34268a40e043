// The tests of the published runtime: values, gradients and addresses. State and errors are in
// published_state_test.cc. Each runs in all three sharing modes.
//
// The name of a test is `Row`, the group of the published test, and the rest of that test's name.
// The groups: 10.1 without slots, 10.2 process state, 10.3 the runtime that shares by checkpoints
// (here kCheckpoint), 10.4 the one that shares by arenas (kArena), 10.6 injected failures. Not here
// are:
//
//   test                                             why
//   10.1 fp8 weight caching, cp_p2p_transport_group  no quantised weights, no process groups here
//   10.1 make_graphed_callables, dot product, ...    properties/equality_test.cc: every block
//   10.2 class call operator, garbage collection     Python
//   10.3 rejects_missing_allocator_api               entry points are linked
//   10.3 rejects_public_cuda_tensor_subclass         Python classes; bare parameters stand for them
//   10.4 arena_view_uses_typed_storage_offset        arenas are bytes
//   10.4 handles_wrapper_subclass_module_state       Python classes
//   10.4 handles_mxfp8_module_parameters, _saved     hardware
//   10.4 rejects_non_tensor_sample_kwargs            types; an undefined tensor stands for it
//   10.6 a detach                                    see published_state_test.cc
#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>

#include <set>

#include "core/device/device.h"
#include "core/models/blocks.h"
#include "properties/published_testing.h"

namespace slotgraph::properties {
namespace {

constexpr std::int64_t kElements = 4096;
const Options kUnused{.unused_inputs = true};

Plan lockstep(int variants) { return distinct_plan({1}, variants, {1, -1}); }
Net five_variants(const GraphModule& module) {
  return {lockstep(5), {module}, [](int) { return ones({kElements}); }};
}
at::Tensor cube(const at::Tensor& x) { return x * x * 3; }

// Every branch once, in this order, forward and then backward.
void each(Replay& replay, const std::vector<int>& branches) {
  for (const int branch : branches) replay.run({branch + 1, -branch - 1});
}
std::set<const void*> addresses(const Replay& replay, int branches) {
  std::set<const void*> result;
  for (int b = 0; b < branches; ++b) result.insert(replay.address(b));
  return result;
}
template <typename Body>
void in_all_modes(Body body) {
  for (const Mode mode : slot_modes()) {
    SCOPED_TRACE(static_cast<int>(mode));
    body(mode);
  }
}

TEST_F(Published, Row10_1_with_interleaved_pipeline_parallelism) {
  in_all_modes([](Mode mode) {
    const Order order{1, 2, 1, 2, -2, -1, 1, 2, -2, -1, -2, -1};
    Replay replay({distinct_plan({1, 1}, 1, order),
                   {unary([](const at::Tensor& x) { return at::sin(x); }),
                    unary([](const at::Tensor& x) { return at::tanh(x) * x; })},
                   [](int) { return ones({16}); }},
                  mode);
    // Branches: chunk 0 has 0 to 2, chunk 1 has 3 to 5.
    for (int i = 0; i < 2; ++i) replay.run({1, 4, 2, 5, -4, -1, 3, 6, -5, -2, -6, -3});
  });
}

TEST_F(Published, Row10_3_variants_share_one_backing) {
  in_all_modes([](Mode mode) {
    for (const std::int64_t n : {std::int64_t{0}, kElements}) {
      Net net(lockstep(5), {unary([](const at::Tensor& x) { return (x * x).sum({0}, true) * 3; })},
              [n](int) { return ones({n}); });
      Replay replay(net, mode, kUnused);
      for (int lifetime = 0; lifetime < 2; ++lifetime) {
        each(replay, {4, 3, 2, 1, 0});
        EXPECT_EQ(addresses(replay, 5).size(), 1u) << n;
      }
    }
  });
}

TEST_F(Published, Row10_3_skips_zero_layer_pipeline_chunks) {
  in_all_modes([](Mode mode) {
    for (const std::vector<int>& layers :
         {std::vector<int>{1, 0}, std::vector<int>{1, 0, 1}, std::vector<int>{1, 0, 0, 1}}) {
      Order order;  // two microbatches, as long as the shortest step with virtual stages
      for (int m = 0; m < 2; ++m) {
        for (std::size_t c = 1; c <= layers.size(); ++c) order.push_back(static_cast<int>(c));
        for (std::size_t c = layers.size(); c >= 1; --c) order.push_back(-static_cast<int>(c));
      }
      Net net(distinct_plan(layers, 1, order), {unary([](const at::Tensor& x) { return x * x; })},
              [](int) { return ones({16}); });
      Replay replay(net, mode);
      for (int b = 0; b < static_cast<int>(net.samples.size()); ++b) each(replay, {b});
    }
  });
}

TEST_F(Published, Row10_3_preserves_aliased_public_outputs) {
  in_all_modes([](Mode mode) {
    Net net(lockstep(2), {stateless([](at::TensorList in, const NamedTensors&) -> Tensors {
              const at::Tensor y = in[0] * in[0];
              return {y, y.narrow(0, 4, 12)};
            })},
            [](int) { return ones({16}); });
    Replay replay(net, mode);
    for (const int b : {0, 1}) {
      replay.forward(b);
      const Tensors out = replay.outputs(b);
      EXPECT_EQ(static_cast<const char*>(out[1].const_data_ptr()),
                static_cast<const char*>(out[0].const_data_ptr()) + 16);
      replay.backward(b);
      const at::Tensor before = out[0].detach().clone();
      out[1].detach().add_(1);
      EXPECT_TRUE(same_bytes(out[0].detach().narrow(0, 4, 12), before.narrow(0, 4, 12) + 1));
      EXPECT_TRUE(same_bytes(out[0].detach().narrow(0, 0, 4), before.narrow(0, 0, 4)));
    }
  });
}

TEST_F(Published, Row10_3_preserves_public_outputs_aliased_to_module_state) {
  in_all_modes([](Mode mode) {
    for (const bool parameter : {true, false}) {
      const auto module = std::make_shared<torch::nn::Module>("state");
      const at::Tensor state = parameter ? module->register_parameter("state", ramp({16}))
                                         : module->register_buffer("state", ramp({16}));
      Net net(lockstep(2),
              {{module,
                [state](at::TensorList in, const NamedTensors&) -> Tensors {
                  return {in[0] * in[0], state.view({-1})};
                }}},
              [](int) { return ones({16}); });
      Replay replay(net, mode, kUnused);
      for (const int b : {0, 1}) {
        replay.forward(b);
        EXPECT_EQ(replay.outputs(b)[1].const_data_ptr(), state.const_data_ptr());
        replay.backward(b);
        EXPECT_TRUE(!parameter || same_bytes(replay.gradients()[1], at::full_like(state, 2)));
      }
    }
  });
}

TEST_F(Published, Row10_3_input_staging_respects_overlapping_liveness) {
  in_all_modes([](Mode mode) {
    Net net(distinct_plan({1}, 1, {1, 1, -1, -1}),
            {unary([](const at::Tensor& x) { return x * x; })}, [](int) { return ones({16}); });
    Replay replay(net, mode);
    replay.run({1, 2, -1, -2});
  });
}

// Ours never writes to the shared sample: kPlacement gives each frame a place for it, the others
// snapshot one.
TEST_F(Published, Row10_3_snapshots_shared_kwarg_across_alternate_liveness) {
  in_all_modes([](Mode mode) {
    const at::Tensor scale = at::ones({16}, at::device(at::kCUDA));
    Net net(distinct_plan({1}, 1, {1, -1, 1, -1}),
            {stateless([](at::TensorList in, const NamedTensors& named) -> Tensors {
              return {in[0] * named[0].second};
            })},
            [&](int) {
              Inputs sample = ones({16});
              sample.named = {{"scale", scale}};
              return sample;
            });
    Replay replay(net, mode, kUnused);
    replay.run({1, 2, -1, -2});
    EXPECT_TRUE(same_bytes(scale, at::ones_like(scale)));
  });
}

TEST_F(Published, Row10_3_checkpoint_reuses_lockstep_branches) {
  in_all_modes([](Mode mode) {
    Replay replay(five_variants(unary([](const at::Tensor& x) {
                    return at::cat({x * x, at::sin(x), at::cos(x)}).narrow(0, 0, kElements) * 3;
                  })),
                  mode, kUnused);
    each(replay, {0, 1, 2, 3, 4});
    each(replay, {1, 0, 2, 3, 4});
    EXPECT_EQ(addresses(replay, 5).size(), 1u);
  });
}

TEST_F(Published, Row10_3_checkpoint_reclaims_retained_branch_outputs) {
  in_all_modes([](Mode mode) {
    const auto retained = std::make_shared<at::Tensor>();
    GraphModule module = unary([retained](const at::Tensor& x) { return *retained = cube(x); });
    module.held = [retained] { return Tensors{*retained}; };
    Replay replay(five_variants(module), mode);
    each(replay, {0, 1, 2, 3, 4});
    EXPECT_EQ(addresses(replay, 5).size(), 1u);
  });
}

TEST_F(Published, Row10_3_checkpoint_tracks_native_saved_storage) {
  in_all_modes([](Mode mode) {
    Replay replay(five_variants(unary([](const at::Tensor& x) {
                    const at::Tensor h = x * 2;
                    return h * h;
                  })),
                  mode);
    each(replay, {0, 1, 2, 3, 4});
  });
}

// Row 10.4 variants_reuse_native_saved_allocations is the same in variant-major order.
TEST_F(Published, Row10_3_fork_reuses_native_saved_allocations) {
  in_all_modes([](Mode mode) {
    std::vector<std::size_t> bytes;
    for (const int variants : {2, 5}) {
      std::vector<GraphModule> modules{unary([](const at::Tensor& x) { return x * x; })};
      modules.resize(variants, unary([](const at::Tensor& x) {
                       const at::Tensor s = at::sin(x);
                       return s * s;
                     }));
      Net net(distinct_plan({1}, variants, {1, 1, -1, -1}), modules,
              [](int) { return ones({kElements}); });
      Replay replay(net, mode);
      for (int v = 0; v < variants; ++v) replay.run({2 * v + 1, 2 * v + 2, -2 * v - 1, -2 * v - 2});
      bytes.push_back(replay.set().memory().reserved_bytes);
    }
    EXPECT_EQ(bytes[0], bytes[1]);
  });
}

GraphModule scaling(std::int64_t elements = kElements) {
  const auto module = std::make_shared<torch::nn::Module>("scaling");
  const at::Tensor weight = module->register_parameter("weight", ramp({elements}));
  return {module,
          [weight](at::TensorList in, const NamedTensors&) { return Tensors{in[0] * weight}; }};
}

// Ours returns clones: parameter gradients have no common address (10.4 says the same).
TEST_F(Published, Row10_3_checkpoint_aliases_parameter_gradients) {
  in_all_modes([](Mode mode) {
    Replay replay(five_variants(scaling()), mode, kUnused);
    each(replay, {0, 1, 2, 3, 4});
  });
}

// Row 10.4 explicit_outputs_share_slot_address is the same.
TEST_F(Published, Row10_3_native_io_aliases_graph_pool_storage) {
  in_all_modes([](Mode mode) {
    Replay replay(five_variants(unary(cube)), mode);
    each(replay, {0, 1, 2, 3, 4});
    EXPECT_EQ(addresses(replay, 5).size(), 1u);
  });
}

TEST_F(Published, Row10_3_releases_outputs_before_next_forward_group) {
  in_all_modes([](Mode mode) {
    Net net(distinct_plan({1}, 3, {1, 1, -1, -1}), {unary(cube)},
            [](int) { return ones({kElements}); });
    Replay replay(net, mode);
    for (int v = 0; v < 3; ++v) replay.run({2 * v + 1, 2 * v + 2, -2 * v - 1, -2 * v - 2});
  });
}

TEST_F(Published, Row10_3_releases_transients_across_vpp_tail_backward) {
  in_all_modes([](Mode mode) {
    const Order order{1, 1, 2, 2, 1, -2, 1, -2, 2, -1, 2, -1, -2, -2, -1, -1};
    Net net(distinct_plan({1, 1}, 3, order), {unary(cube)}, [](int) { return ones({kElements}); });
    Replay replay(net, mode);
    each(replay, {0});
    // Ours replays the whole step too, each microbatch with another variant of eight branches.
    replay.run({1, 10, 21, 22 - 8, 19, -21, 4, -14, 7, -1, 24, -10, -7, -24, -19, -4});
  });
}

TEST_F(Published, Row10_3_snapshots_live_inputs_across_slot_wrap) {
  in_all_modes([](Mode mode) {
    Net net(distinct_plan({1}, 1, {1, 1, -1, -1}), {unary(cube)},
            [](int) { return ones({kElements}); });
    Replay replay(net, mode);
    replay.run({1, 2, -1, 1, -2, -1});
  });
}

TEST_F(Published, Row10_3_saved_arenas_cover_alternate_schedule) {
  in_all_modes([](Mode mode) {
    Net net(distinct_plan({1}, 1, {1, 1, -1, 1, -1, 1, -1, -1}), {unary([](const at::Tensor& x) {
              const at::Tensor s = at::sin(x);
              return s * s;
            })},
            [](int) { return ones({kElements}); });
    Replay replay(net, mode);
    replay.run({1, 2, 3, -1, 4, -2, -3, -4});
  });
}

// Ours needs two microbatches with two chunks.
TEST_F(Published, Row10_3_honors_user_grad_liveness_groups) {
  in_all_modes([](Mode mode) {
    Net net(distinct_plan({1, 1}, 1, {1, 2, -2, -1, 1, 2, -2, -1}),
            {unary([](const at::Tensor& x) { return x * x; })},
            [](int) { return ones({kElements}); });
    const auto set = net.capture(mode);
    const at::Tensor x = ramp({kElements}).requires_grad_(true);
    const auto chained = [&x](const Forward& first, const Forward& second) {
      const at::Tensor y = second(first({x}, {}), {})[0];
      return torch::autograd::grad({y}, {x}, {at::ones_like(y)})[0];
    };
    const auto graph = [&set](int branch) {
      return [&set, branch](at::TensorList in, const NamedTensors&) {
        return set->at(branch).forward({in.vec(), {}});
      };
    };
    const Forward square = net.modules[0].forward;
    EXPECT_TRUE(same_bytes(chained(graph(0), graph(2)), chained(square, square)));
    set->end_step();
    const auto gradient_of = [&set](int branch) { return set->ownership(branch).gradient.at(0); };
    EXPECT_NE(gradient_of(0).begin, gradient_of(2).begin);
  });
}

TEST_F(Published, Row10_3_coalesces_overlapping_saved_views) {
  in_all_modes([](Mode mode) {
    const GraphModule module = find_block("overlapping_saves").make({16, at::kFloat}, 1);
    Net net(distinct_plan({1}, 1, {1, 1, -1, -1}), {module}, [](int) { return ones({8, 16}); });
    Replay replay(net, mode);
    replay.run({1, 2, -2, -1});
  });
}

// Ours has no dummy gradient: the weight gets none, and its hook never fires, in eager as well.
TEST_F(Published, Row10_3_preserves_fused_wgrad_hook) {
  in_all_modes([](Mode mode) {
    const GraphModule module = find_block("main_grad").make({32, at::kBFloat16}, 1);
    Net net(distinct_plan({1}, 2, {1, -1}), {module}, [](int) {
      return Inputs{
          {at::ones({32, 32}, at::dtype(at::kBFloat16).device(at::kCUDA)).requires_grad_(true)},
          {}};
    });
    const auto set = net.capture(mode, kUnused);
    const at::Tensor sum = buffers_of(module)[0];
    EXPECT_TRUE(same_bytes(sum, at::zeros_like(sum))) << "warm-up and capture left no trace";
    for (int replay = 1; replay <= 4; ++replay) {
      const Inputs input = net.samples[0];
      const at::Tensor out = set->at(replay % 2).forward(input)[0];
      torch::autograd::grad({out}, input.positional, {at::ones_like(out)});
      EXPECT_TRUE(same_bytes(sum, at::full_like(sum, 32.0 * replay)));
    }
  });
}

TEST_F(Published, Row10_4_staging_preserves_nonleading_input_aliases) {
  in_all_modes([](Mode mode) {
    const at::Tensor a = at::full({16}, 2.0, at::device(at::kCUDA)).requires_grad_(true);
    const at::Tensor b = at::full({16}, 3.0, at::device(at::kCUDA)).requires_grad_(true);
    const at::Tensor c = at::full({16}, 5.0, at::device(at::kCUDA)).requires_grad_(true);
    Net net(lockstep(2), {stateless([](at::TensorList in, const NamedTensors&) -> Tensors {
              return {in[0] * in[0] + in[1] * in[1]};
            })},
            [&](int branch) {
              return branch == 0 ? Inputs{{a, b}, {}} : Inputs{{c, a}, {}};
            });
    Replay replay(net, mode);
    const Tensors places = replay.set().at(1).static_inputs();
    EXPECT_NE(places[0].const_data_ptr(), places[1].const_data_ptr());
    each(replay, {0, 1, 0, 1});
  });
}

TEST_F(Published, Row10_4_tracks_expanded_native_saved_storage) {
  in_all_modes([](Mode mode) {
    const GraphModule module = find_block("expanded_save").make({16, at::kFloat}, 1);
    Replay replay({lockstep(2), {module}, [](int) { return ones({8, 16}); }}, mode);
    each(replay, {0, 1});
  });
}

TEST_F(Published, Row10_4_returns_correct_parameter_gradients) {
  in_all_modes([](Mode mode) {
    const Net net = five_variants(scaling());
    Replay replay(net, mode);
    each(replay, {0, 1, 2, 3, 4});
    at::Tensor weight = net.modules[0].module->parameters()[0];
    for (const double x : {2.0, 3.0}) {  // accumulated by autograd, without clearing
      const Inputs input{{at::full({kElements}, x, at::device(at::kCUDA))}, {}};
      const Inputs leaf{{input.positional[0].requires_grad_(true)}, {}};
      const at::Tensor out = replay.set().at(0).forward(leaf)[0];
      torch::autograd::backward({out}, {at::ones_like(out)});
    }
    EXPECT_TRUE(same_bytes(weight.grad(), at::full_like(weight, 5)));
  });
}

TEST_F(Published, Row10_4_returns_owned_parameter_gradients) {
  in_all_modes([](Mode mode) {
    Replay replay({lockstep(1), {scaling()}, [](int) { return ones({kElements}); }}, mode);
    each(replay, {0});
    const at::Tensor first = replay.gradients()[1], copy = first.clone();
    each(replay, {0});
    EXPECT_NE(replay.gradients()[1].const_data_ptr(), first.const_data_ptr());
    EXPECT_TRUE(same_bytes(first, copy));
  });
}

// Ours counts the gradient arena too, and kPlacement has the static input in the frame's arena.
TEST_F(Published, Row10_4_does_not_duplicate_output_backed_saves) {
  in_all_modes([](Mode mode) {
    Replay replay({lockstep(1),
                   {unary([](const at::Tensor& x) { return at::sigmoid(x); })},
                   [](int) { return ones({kElements}); }},
                  mode);
    each(replay, {0});
    EXPECT_EQ(replay.set().memory().arena_bytes,
              (mode == Mode::kPlacement ? 3 : 2) * kElements * sizeof(float));
  });
}

TEST_F(Published, Probe10_6_three_way_alias) {
  for (const Mode mode : graph_modes()) {
    SCOPED_TRACE(static_cast<int>(mode));
    Net net(lockstep(1), {stateless([](at::TensorList in, const NamedTensors&) -> Tensors {
              const at::Tensor y = in[0] * in[0];
              return {y.narrow(0, 0, 12), y.narrow(0, 4, 12), in[0].view({-1})};
            })},
            [](int) { return ones({16}); });
    Replay replay(net, mode);
    const Inputs input{{ramp({16}, 1.5).requires_grad_(true)}, {}};
    replay.forward(0, input);
    const Tensors out = replay.outputs(0);
    EXPECT_EQ(static_cast<const char*>(out[1].const_data_ptr()),
              static_cast<const char*>(out[0].const_data_ptr()) + 16);
    EXPECT_NE(out[2].const_data_ptr(), input.positional[0].const_data_ptr());
    EXPECT_NE(out[2].const_data_ptr(), net.samples[0].positional[0].const_data_ptr())
        << "ours never keeps the sample";
    replay.backward(0);
    const at::Tensor second = out[1].detach().narrow(0, 0, 1).clone();
    out[0].detach().narrow(0, 4, 1).add_(1);
    EXPECT_TRUE(same_bytes(out[1].detach().narrow(0, 0, 1), second + 1));
  }
}

// The sample of both frames is one tensor (10.4: rebinds_mutable_sample_args); ours never writes to
// it, and gives each colour a buffer.
TEST_F(Published, Probe10_6_overlapping_liveness_staging) {
  in_all_modes([](Mode mode) {
    const Inputs shared = ones({16});
    Net net(distinct_plan({1}, 1, {1, 1, -1, -1}),
            {unary([](const at::Tensor& x) { return x * x; })}, [&](int) { return shared; });
    Replay replay(net, mode);
    EXPECT_NE(replay.set().at(0).static_inputs()[0].const_data_ptr(),
              replay.set().at(1).static_inputs()[0].const_data_ptr());
    replay.run({1, 2, -1, -2});
    EXPECT_TRUE(same_bytes(shared.positional[0], at::ones_like(shared.positional[0])));
  });
}

}  // namespace
}  // namespace slotgraph::properties

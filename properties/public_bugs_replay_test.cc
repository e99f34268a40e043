// Public reports (public_bugs.csv) about replays: memory that is read or written too late,
// gradients that are lost, orders of replays. In all sharing modes; where it shows a symptom,
// PyTorch's own arrangement as well.
#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "core/device/device.h"
#include "core/plan/planner.h"
#include "properties/published_testing.h"

namespace slotgraph::properties {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using testing::gradient;

struct PublicBugs : Published {};

// Two variants of one frame, of 4 and 8 rows.
Net two_variants(const GraphModule& module) {
  return {distinct_plan({1}, 2, {1, -1}), {module}, [](int branch) {
            return ones({branch == 0 ? 4 : 8, 8});
          }};
}
GraphModule linear() {
  const auto module = std::make_shared<torch::nn::Module>("linear");
  const at::Tensor weight = module->register_parameter("weight", ramp({8, 8}));
  const at::Tensor bias = module->register_parameter("bias", ramp({8}, -0.5));
  return {module, [=](at::TensorList in, const NamedTensors&) -> Tensors {
            return {at::matmul(at::tanh(at::matmul(in[0], weight) + bias), weight)};
          }};
}
at::Tensor input(std::int64_t rows, double start) {
  return ramp({rows, 8}, start).requires_grad_(true);
}
// What reading the tensor throws.
std::string read(const at::Tensor& tensor) {
  try {
    tensor.clone();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}
bool inside(const std::vector<Region>& regions, const at::Tensor& tensor) {
  const auto* const address = static_cast<const std::byte*>(tensor.const_data_ptr());
  return std::any_of(regions.begin(), regions.end(), [&](const Region& region) {
    return region.begin <= address && address < region.begin + region.bytes;
  });
}

// 42, 43, 79: gradients that accumulate over replays were overwritten or lost, since `.grad` was a
// buffer of the graphs, or the one that it was at capture was replaced.
// https://github.com/pytorch/pytorch/issues/169545 https://github.com/pytorch/pytorch/issues/96693
// https://github.com/NVIDIA/TransformerEngine/pull/869
TEST_F(PublicBugs, GradientsAccumulateOutsideThePools) {
  for (const Mode mode : slot_modes()) {
    for (const bool preset : {true, false}) {
      const Net net = two_variants(linear());
      const Tensors parameters = parameters_of(net.modules[0]);
      Tensors expected, before;
      for (at::Tensor parameter : parameters) {
        if (preset) parameter.mutable_grad() = at::full_like(parameter, 2.0).detach();
        before.push_back(parameter.grad());
        expected.push_back(preset ? parameter.grad().clone() : at::Tensor());
      }
      const auto set = net.capture(mode);
      for (int step = 0; step < 4; ++step) {
        const at::Tensor x = input(step % 2 == 0 ? 4 : 8, step);
        const at::Tensor truth = net.modules[0].forward({x}, {})[0];
        const Tensors found = torch::autograd::grad({truth}, parameters, {at::ones_like(truth)});
        const at::Tensor y = set->at(step % 2).forward({{x}, {}})[0];
        torch::autograd::backward({y}, {at::ones_like(y)});
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          expected[i] = expected[i].defined() ? expected[i] + found[i] : found[i];
          EXPECT_TRUE(same_bytes(parameters[i].grad(), expected[i])) << step;
          EXPECT_FALSE(inside(set->pool_memory(), parameters[i].grad()));
          EXPECT_TRUE(!preset || parameters[i].grad().is_same(before[i]));
        }
      }
    }
  }
}

// 45, 58: outputs of earlier calls are read after later ones. In the frame's own life they are
// right; later, reading is an error in checking mode, never garbage without notice.
// https://github.com/pytorch/pytorch/issues/105169 https://github.com/pytorch/pytorch/pull/166975
TEST_F(PublicBugs, OutputsThatAreKeptTooLongAreErrors) {
  const GraphModule module = linear();
  for (const Mode mode : slot_modes()) {
    std::vector<int> order{0, 1, 2};
    do {
      const Net net(distinct_plan({1}, 3, {1, -1}), {module}, [](int branch) {
        return ones({4 + branch, 8});
      });
      const auto set = net.capture(mode, {.checking = true});
      Tensors kept;
      for (const int branch : order) {
        const at::Tensor x = input(4 + branch, branch);
        kept.push_back(set->at(branch).forward({{x}, {}})[0]);
        for (std::size_t i = 0; i + 1 < kept.size(); ++i)
          EXPECT_NE(read(kept[i].detach()).find("[P11]"), std::string::npos);
        EXPECT_TRUE(same_bytes(kept.back(), module.forward({x}, {})[0]));
        gradient(kept.back(), x);
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// 47: replays that return an input, and inputs that are one tensor.
// https://github.com/pytorch/pytorch/pull/154839
TEST_F(PublicBugs, InputsMayBeOutputs) {
  const std::function<Tensors(at::TensorList)> bodies[] = {
      [](at::TensorList in) -> Tensors { return {in[0]}; },
      [](at::TensorList in) -> Tensors {
        return {in[0], in[0].narrow(0, 1, 3)};
      },
      [](at::TensorList in) -> Tensors {
        return {in[0], in[0]};
      },
      [](at::TensorList in) -> Tensors {
        return {in[0] * in[1] * in[2], in[1]};
      },
      [](at::TensorList in) -> Tensors {
        return {in[0].narrow(0, 1, 3), in[1] * in[2]};
      },
      [](at::TensorList in) -> Tensors {
        return {in[0].t(), in[1].view({-1}), in[0] * in[2]};
      },
  };
  enum class Same { kNone, kOthers, kLeading };  // which inputs are one tensor
  for (const Mode mode : slot_modes()) {
    for (std::size_t i = 0; i < std::size(bodies); ++i) {
      for (const Same same : {Same::kNone, Same::kOthers, Same::kLeading}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(mode)) + " " + std::to_string(i));
        const Net net(distinct_plan({1}, 2, {1, 1, -1, -1}),
                      {stateless([body = bodies[i]](at::TensorList in, const NamedTensors&) {
                        return body(in);
                      })},
                      [&](int) {
                        Tensors inputs;
                        for (int k = 0; k < 3; ++k) inputs.push_back(ones({4, 8}).positional[0]);
                        if (same == Same::kOthers) inputs[2] = inputs[1];
                        if (same == Same::kLeading) inputs[1] = inputs[0];
                        return Inputs{inputs, {}};
                      });
        const Options options{.unused_inputs = true};
        if (same == Same::kLeading && mode != Mode::kPlacement) {
          EXPECT_EQ(rule([&] { net.capture(mode, options); }), "L01");
          continue;
        }
        Replay replay(net, mode, options);
        replay.run({1, 2, -1, -2, 3, 4, -4, -3});
      }
    }
  }
}

// 48, 85: hooks on outputs piled up, since every replay returned the same tensor, or fired for
// another part of the program. https://github.com/pytorch/pytorch/pull/126914
// https://github.com/NVIDIA/Megatron-LM/pull/2572
TEST_F(PublicBugs, AHookOnAnOutputFiresOnceForItsOwnReplay) {
  for (const Mode mode : slot_modes()) {
    const Net net = two_variants(linear());
    const auto set = net.capture(mode);
    std::vector<int> fired;
    for (int replay = 0; replay < 6; ++replay) {
      const at::Tensor x = input(replay % 2 == 0 ? 4 : 8, replay);
      const at::Tensor y = set->at(replay % 2).forward({{x}, {}})[0];
      y.register_hook([&fired, replay](const at::Tensor& incoming) {
        fired.push_back(replay);
        EXPECT_TRUE(same_bytes(incoming, at::ones_like(incoming)));
        return incoming * 2;
      });
      if (replay % 3 == 2) continue;  // no backward: the hook dies with the output
      const at::Tensor truth = net.modules[0].forward({x}, {})[0];
      EXPECT_TRUE(same_bytes(gradient(y, x), gradient(truth * 2, x)));
    }
    EXPECT_EQ(fired, (std::vector<int>{0, 1, 3, 4}));
  }
}

// 49: what an eager piece between two graphs saves is not static.
// https://github.com/pytorch/pytorch/pull/176620
TEST_F(PublicBugs, AnEagerPieceBetweenTwoGraphsSavesWhatItNeeds) {
  for (const Mode mode : slot_modes()) {
    for (const bool ring : {false, true}) {
      // Parameters of their own, since each graph sums its gradients before autograd does.
      const std::vector<GraphModule> modules{linear(), linear()};
      const Net net(distinct_plan({2}, 1, {1, 1, -1, -1}), modules, [](int) {
        return ones({4, 8});
      });
      const auto set = net.capture(mode);
      // Branches: slot 0 has 0 and 1, slot 1 has 2 and 3.
      struct Flight {
        at::Tensor x, y, truth;
      };
      std::vector<Flight> flights;
      for (int slot = 0; slot < (ring ? 2 : 1); ++slot) {
        Flight flight{input(4, slot), {}, {}};
        const auto chain = [&](const Forward& first, const Forward& second) {
          const at::Tensor h = first({flight.x}, {})[0];
          return second({h * at::sin(h) * (slot + 2)}, {})[0];
        };
        const auto graph = [&](int branch) -> Forward {
          return [&set, branch](at::TensorList in, const NamedTensors&) {
            return set->at(branch).forward({in.vec(), {}});
          };
        };
        flight.y = chain(graph(2 * slot), graph(2 * slot + 1));
        flight.truth = chain(modules[0].forward, modules[1].forward);
        flights.push_back(flight);
      }
      for (const Flight& flight : flights) {
        EXPECT_TRUE(same_bytes(flight.y, flight.truth));
        Tensors wanted{flight.x};
        for (const GraphModule& module : modules)
          for (const at::Tensor& parameter : parameters_of(module)) wanted.push_back(parameter);
        const auto gradients = [&](const at::Tensor& y) {
          return torch::autograd::grad({y}, wanted, {at::ones_like(y)});
        };
        const Tensors found = gradients(flight.y), expected = gradients(flight.truth);
        for (std::size_t i = 0; i < wanted.size(); ++i)
          EXPECT_TRUE(same_bytes(found[i], expected[i])) << i;
      }
    }
  }
}

// 50: a graph reads a tensor that it closed over and that has died. The set keeps what the module's
// forward holds; what forward only points at is read wherever it was, by graphs of any kind.
// https://github.com/pytorch/pytorch/pull/174649
TEST_F(PublicBugs, ASetKeepsWhatItsModulesHold) {
  for (const Mode mode : graph_modes()) {
    for (const bool held : {true, false}) {
      at::Tensor constant = ramp({3, 8}, 5).narrow(0, 1, 1);
      const at::Tensor pointed =
          at::from_blob(constant.data_ptr(), {1, 8}, at::TensorOptions(at::kCUDA));
      std::unique_ptr<CallableSet> set;
      {
        const Net net = two_variants(
            unary([kept = held ? constant : pointed](const at::Tensor& x) { return x * kept; }));
        set = net.capture(mode);
      }
      const at::Tensor x = input(4, 1), right = x.detach() * constant;
      constant = at::Tensor();
      device::synchronise();
      const Tensors over(4, at::full({3, 8}, 9.0, at::kCUDA));
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(same_bytes(set->at(0).forward({{x}, {}})[0], right), held);
        set->release();
      }
    }
  }
}

// 54: graphs of one generator on two streams drew each other's numbers.
// https://github.com/pytorch/pytorch/pull/176752
TEST_F(PublicBugs, ReplaysOnTwoStreamsDrawAsInSeries) {
  const auto forward = [](const at::Tensor& x) { return x * at::empty_like(x).uniform_(); };
  const c10::cuda::CUDAStream streams[] = {c10::cuda::getStreamFromPool(),
                                           c10::cuda::getStreamFromPool()};
  at::Generator generator = device::generator();
  for (const Mode mode : slot_modes()) {
    const Net net(distinct_plan({1}, 2, {1, 1, -1, -1}), {unary(forward)}, [](int) {
      return ones({4, 8});
    });
    const auto set = net.capture(mode);
    const std::vector<int> branches{0, 1, 2, 3, 0, 3, 2, 1};
    Tensors expected;
    generator.set_current_seed(21);
    for (std::size_t i = 0; i < branches.size(); ++i)
      expected.push_back(forward(at::ones({4, 8}, at::kCUDA)));
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      device::synchronise();
      device::configure({.order_seed = seed});
      generator.set_current_seed(21);
      Tensors found;
      for (std::size_t i = 0; i < branches.size(); ++i) {
        const c10::cuda::CUDAStreamGuard on(streams[i % 2]);
        found.push_back(set->at(branches[i]).forward(net.samples[branches[i]])[0].detach().clone());
        set->at(branches[i]).release();
      }
      device::synchronise();
      device::configure({});
      for (std::size_t i = 0; i < branches.size(); ++i)
        EXPECT_TRUE(same_bytes(found[i], expected[i])) << "seed " << seed << ", replay " << i;
    }
  }
}

// 56: inputs that are not used, in every variant or in one of them only.
// https://github.com/pytorch/pytorch/pull/90941
TEST_F(PublicBugs, InputsMayBeUnused) {
  const Forward first = [](at::TensorList in, const NamedTensors&) -> Tensors {
    return {in[0] * 2};
  };
  const Forward both = [](at::TensorList in, const NamedTensors& named) -> Tensors {
    return {in[0] * in[1] + named[0].second};
  };
  for (const Mode mode : slot_modes()) {
    for (const bool uses_a : {false, true}) {
      for (const bool uses_b : {false, true}) {
        const std::vector<GraphModule> modules{stateless(uses_a ? both : first),
                                               stateless(uses_b ? both : first)};
        const Net net(distinct_plan({1}, 2, {1, 1, -1, -1}), modules, [](int) {
          Inputs sample = ones({4, 8});
          sample.positional.push_back(ones({4, 8}).positional[0]);
          sample.named = {{"shift", ones({4, 8}).positional[0]}};
          return sample;
        });
        const Options options{.unused_inputs = true};
        if (uses_a != uses_b) {
          EXPECT_EQ(rule([&] { net.capture(mode, options); }), "L05")
              << "variants of a frame return gradients of the same inputs";
          continue;
        }
        EXPECT_EQ(rule([&] { net.capture(mode); }), uses_a ? "" : "W04");
        Replay replay(net, mode, options);
        replay.run({1, 2, -2, -1, 3, 4, -3, -4, 1, 4, -1, -4});
      }
    }
  }
}

// 65: a graph reads a buffer of a module that has been replaced by a larger one since.
// https://github.com/vllm-project/vllm/pull/50386
TEST_F(PublicBugs, StateThatMovedSinceTheCaptureIsRefused) {
  enum class Move { kGrow, kReplace, kNone };
  for (const Mode mode : graph_modes()) {
    for (const bool parameter : {true, false}) {
      for (const Move move : {Move::kGrow, Move::kReplace, Move::kNone}) {
        const auto module = std::make_shared<torch::nn::Module>("grows");
        const at::Tensor state = parameter ? module->register_parameter("state", ramp({64}))
                                           : module->register_buffer("state", ramp({64}));
        const Net net = two_variants({module, [=](at::TensorList in, const NamedTensors&) {
                                        return Tensors{in[0] * state.view({-1}).narrow(0, 0, 8)};
                                      }});
        const auto set = net.capture(mode);
        const at::Tensor x = input(4, 1);
        const at::Tensor y = set->at(0).forward({{x}, {}})[0];
        const at::Tensor place = set->at(1).static_inputs()[0].clone();
        {
          const at::NoGradGuard none;
          if (move == Move::kGrow) state.set_data(at::zeros({1 << 20}, at::kCUDA));
          if (move == Move::kReplace) state.set_data(state.clone());
          state.mul_(2);
        }
        const std::string expected = move == Move::kNone ? "" : "P13";
        EXPECT_EQ(rule([&] { gradient(y, x); }), expected);
        set->release();
        Tensors found;
        const at::Tensor larger = input(8, 2);
        EXPECT_EQ(rule([&] { found = set->at(1).forward({{larger}, {}}); }), expected);
        if (move == Move::kNone) {
          EXPECT_TRUE(same_bytes(found[0], net.modules[1].forward({larger}, {})[0]));
        } else {
          EXPECT_TRUE(same_bytes(set->at(1).static_inputs()[0], place)) << "nothing was copied";
        }
      }
    }
  }
}

// 66: memory of the device, events and graphs grew with each replay.
// https://github.com/ROCm/rocm-libraries/issues/9505
TEST_F(PublicBugs, ReplaysTakeNothingOfTheDevice) {
  for (const Mode mode : slot_modes()) {
    const Net net = two_variants(linear());
    Replay replay(net, mode);
    const auto use = [] {
      device::synchronise();
      const device::Resources resources = device::resources();
      return std::vector<std::size_t>{device::memory_info().free_bytes,
                                      resources.graphs,
                                      resources.events,
                                      resources.captures,
                                      resources.queued,
                                      testing::DeviceTest::allocated()};
    };
    std::vector<std::size_t> before;
    for (int i = 0; i < 200; ++i) {
      replay.run({1, -1, 2, -2});
      if (i == 1) before = use();
    }
    EXPECT_EQ(use(), before);
  }
}

// 72: the order of parameters differed between the forward and what grad was asked for, with chunks
// of different parameters. https://github.com/NVIDIA/TransformerEngine/pull/1138
TEST_F(PublicBugs, EveryParameterOfEveryChunkGetsItsOwnGradient) {
  const auto scaled = [](const std::vector<std::string>& names) {
    const auto module = std::make_shared<torch::nn::Module>("scaled");
    std::map<std::string, at::Tensor> parameters;
    for (const std::string& name : names) {
      // "scale" has the sizes of "shift", so that only the values tell them apart.
      const at::Tensor value =
          name == "weight" ? ramp({8, 8}) : ramp({8}, static_cast<double>(name.size()));
      parameters[name] = module->register_parameter(name, value, name != "frozen");
    }
    return GraphModule{module, [=](at::TensorList in, const NamedTensors&) -> Tensors {
                         at::Tensor y = in[0];
                         for (const auto& [name, parameter] : parameters)
                           y = name == "weight" ? at::matmul(y, parameter)
                                                : at::tanh(y * parameter);
                         return {y};
                       }};
  };
  std::vector<std::string> names{"frozen", "scale", "shift", "weight"};
  std::vector<GraphModule> modules;
  do modules.push_back(scaled(names));
  while (std::next_permutation(names.begin(), names.end()));
  modules.push_back(scaled({"weight"}));
  const Order order{1, 2, -2, -1, 1, 2, -2, -1};
  for (const Mode mode : slot_modes()) {
    for (std::size_t i = 0; i + 1 < modules.size(); i += 2) {
      Replay replay({distinct_plan({1, 1}, 1, order),
                     {modules[i], modules[modules.size() - 1 - i]},
                     [](int) {
                       return ones({4, 8});
                     }},
                    mode);
      // Branches: chunk 0 has 0 and 1, chunk 1 has 2 and 3.
      replay.run({1, 3, 2, 4, -3, -1, -4, -2});
    }
  }
}

// 73: what a backward needs is freed once it is captured, and later captures take its place; right
// only if backwards are replayed in the order of their capture.
// https://github.com/NVIDIA/TransformerEngine/pull/1345
TEST_F(PublicBugs, BackwardsMayBeReplayedInAnotherOrderThanCaptured) {
  const std::vector<Order> captured{{1, -1, 1, -1}, {1, 1, -1, -1}};
  const std::vector<std::vector<int>> replayed{{0, ~0, 1, ~1}, {0, 1, ~0, ~1}, {0, 1, ~1, ~0}};
  const auto differing = [](Mode mode, const Order& order, const std::vector<int>& events) {
    const at::Tensor weight = ramp({8, 8}, -0.4);
    const Net net(distinct_plan({1}, 1, order), {unary([weight](const at::Tensor& x) {
                    at::Tensor y = x;
                    for (int i = 0; i < 4; ++i) y = at::tanh(at::matmul(y, weight) + y);
                    return y * 2;
                  })},
                  [](int) {
                    return ones({4, 8});
                  });
    const auto set = net.capture(mode);
    const Tensors inputs{input(4, 0.5), input(4, 1.5)};
    Tensors outputs(2);
    int different = 0;
    for (const int event : events) {
      const int branch = event < 0 ? ~event : event;
      if (event >= 0) {
        outputs[branch] = set->at(branch).forward({{inputs[branch]}, {}})[0];
        continue;
      }
      const at::Tensor truth = net.modules[0].forward({inputs[branch]}, {})[0];
      different += !same_bytes(outputs[branch], truth);
      different +=
          !same_bytes(gradient(outputs[branch], inputs[branch]), gradient(truth, inputs[branch]));
    }
    return different;
  };
  int upstream = 0;
  for (const Order& order : captured) {
    for (const std::vector<int>& events : replayed) {
      upstream += differing(Mode::kPerVariant, order, events);
      for (const Mode mode : graph_modes())
        EXPECT_EQ(differing(mode, order, events), 0) << static_cast<int>(mode);
    }
  }
  EXPECT_GT(upstream, 0);
}

// 78, 82: memory grew with the number of microbatches, and a step of more of them than captured
// failed. Slots hold as many as are in flight at once, whatever the step's length; one more is
// refused. https://github.com/NVIDIA/TransformerEngine/issues/2543
// https://github.com/NVIDIA/Megatron-LM/issues/1566
TEST_F(PublicBugs, MemoryDoesNotGrowWithTheMicrobatches) {
  for (const Mode mode : slot_modes()) {
    std::vector<std::size_t> reserved;
    for (const int microbatches : {2, 4, 16, 64}) {
      PlanRequest request;
      request.name = "microbatches";
      request.shape.pipeline_size = 2;
      request.layers_per_chunk = {1};
      request.cp_sizes = {2, 1};
      request.counts = {microbatches};
      const Net net(make_plan(request), {linear()}, [](int) { return ones({4, 8}); });
      Replay replay(net, mode);
      reserved.push_back(replay.set().memory().reserved_bytes);
      const int ring = net.plan.ring_length;
      ASSERT_EQ(ring, 2);
      replay.forward(0);
      for (int m = 0; m < microbatches; ++m) {  // forward of m + 1, backward of m
        if (m + 1 < microbatches) replay.forward((m + 1) % ring);
        const Inputs more = ones({4, 8});
        for (int slot = 0; slot < ring && m + 1 < microbatches; ++slot)
          EXPECT_EQ(rule([&] { replay.set().at(slot).forward(more); }), "P06");
        replay.backward(m % ring);
      }
    }
    EXPECT_EQ(reserved, std::vector<std::size_t>(4, reserved[0]));
  }
}

// 82: a branch that the plan does not have.
TEST_F(PublicBugs, ABranchOutsideThePlanIsRefused) {
  for (const ModeTraits& traits : kModes) {
    const auto set = two_variants(linear()).capture(traits.mode);
    for (const int branch : {-1, 2, 1000})
      EXPECT_EQ(rule([&] { set->at(branch); }), "P12") << branch;
  }
}

// 80: the buffer of an input is used again before the backward that reads it.
// https://github.com/NVIDIA/Megatron-LM/pull/4433
TEST_F(PublicBugs, AnInputMayBeOverwrittenBeforeItsBackward) {
  enum class Use { kFill, kFree, kOtherFrame };
  for (const Mode mode : slot_modes()) {
    for (const Use use : {Use::kFill, Use::kFree, Use::kOtherFrame}) {
      const Net net(distinct_plan({1}, 2, {1, 1, -1, -1}),
                    {unary([](const at::Tensor& x) { return x * x * at::sin(x); })}, [](int) {
                      return ones({4, 8});
                    });
      const auto set = net.capture(mode);
      at::Tensor buffer = ramp({4, 8}, 0.7);
      const at::Tensor leaf = input(4, 0.7);
      const at::Tensor truth = gradient(net.modules[0].forward({leaf}, {})[0], leaf);
      const at::Tensor view = buffer.detach().requires_grad_(true);
      const at::Tensor y = set->at(0).forward({{view}, {}})[0];
      if (use == Use::kFill) buffer.fill_(100);
      if (use == Use::kFree) view.unsafeGetTensorImpl()->set_storage_keep_dtype(leaf.storage());
      buffer.fill_(50);
      if (use == Use::kOtherFrame) set->at(1).forward({{buffer.detach().requires_grad_(true)}, {}});
      EXPECT_TRUE(same_bytes(gradient(y, view), truth));
    }
  }
}

// 84: buffers were recycled by size alone: inputs of equal bytes, but of other dtypes, layouts or
// gradient wishes. https://github.com/NVIDIA/Megatron-LM/pull/2391
TEST_F(PublicBugs, InputsOfEqualBytesMayDifferInEverythingElse) {
  const auto make = [](int kind) -> at::Tensor {
    const at::Tensor base = ramp({8, 8}, 1);
    switch (kind) {
      case 0:
        return base.requires_grad_(true);
      case 1:
        return base;
      case 2:
        return base.t().requires_grad_(true);
      case 3:
        return at::ones({8, 8}, base.options().dtype(at::kInt));
      default:
        return at::ones({16, 8}, base.options().dtype(at::kBFloat16)).requires_grad_(true);
    }
  };
  const Forward forward = [](at::TensorList in, const NamedTensors&) -> Tensors {
    const at::Tensor other = in[1].to(at::kFloat);
    return {in[0] * at::sin(other).sum(), (in[0] * 2).t()};
  };
  for (const Mode mode : slot_modes()) {
    for (int first = 0; first < 5; ++first) {
      for (int second = 0; second < 5; ++second) {
        SCOPED_TRACE(std::to_string(first) + " " + std::to_string(second));
        const Net net(distinct_plan({1}, 2, {1, 1, -1, -1}), {stateless(forward)},
                      [&](int branch) -> Inputs {
                        Inputs sample = ones({4, 8});
                        sample.positional.push_back(make(branch < 2 ? first : second));
                        return sample;
                      });
        const Options options{.unused_inputs = true};
        const at::Tensor a = make(first), b = make(second);
        if (a.requires_grad() != b.requires_grad() ||
            (a.requires_grad() && a.scalar_type() != b.scalar_type())) {
          EXPECT_EQ(rule([&] { net.capture(mode, options); }),
                    a.requires_grad() == b.requires_grad() ? "L07" : "L05")
              << "variants return gradients of the same inputs and types";
          continue;
        }
        Replay replay(net, mode, options);
        replay.run({1, 2, -1, -2, 3, 4, -4, -3, 1, 4, -1, -4});
      }
    }
  }
}

}  // namespace
}  // namespace slotgraph::properties

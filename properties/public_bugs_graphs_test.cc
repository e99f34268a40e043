// Public reports (public_bugs.csv) about graphs, shared pools and streams below the slot runtime:
// what upstream does, on the real allocator and the emulated device, and how a program keeps clear
// of it.
#include <ATen/Functions.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <set>

#include "core/device/device.h"
#include "core/memory/allocator_config.h"
#include "core/memory/private_pool.h"
#include "properties/published_testing.h"

namespace slotgraph::properties {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using Stream = c10::cuda::CUDAStream;

struct PublicBugs : testing::DeviceTest {
  PublicBugs() { device::synchronise(); }
  ~PublicBugs() override { device::synchronise(); }
};

std::unique_ptr<device::Graph> capture(const PrivatePool& pool, const std::function<void()>& work) {
  device::synchronise();
  auto graph = device::make_graph();
  graph->begin_capture(pool.id());
  try {
    work();
  } catch (...) {
    graph->abandon();
    throw;
  }
  graph->end_capture();
  return graph;
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void wait_for(Stream waiting, Stream other) {
  c10::Event event(c10::DeviceType::CUDA);
  event.record(other.unwrap());
  event.block(waiting.unwrap());
}

Stream other_stream() {
  Stream stream = c10::cuda::getStreamFromPool();
  while (stream == c10::cuda::getCurrentCUDAStream()) stream = c10::cuda::getStreamFromPool();
  return stream;
}

struct ReuseSetting {
  explicit ReuseSetting(bool on) { set(on); }
  ~ReuseSetting() { set(false); }
  static void set(bool on) {
    set_allocator_config(
        fmt::format("graph_capture_record_stream_reuse:{}", on ? "True" : "False"));
  }
};

// 57, 58, 59: whether graphs that never run together may share a pool and run in any order. They
// may, as long as no output is read after another graph has run, unless it was alive while that
// one was captured.
// https://github.com/pytorch/pytorch/pull/121475 https://github.com/pytorch/pytorch/pull/166975
// https://github.com/pytorch/pytorch/issues/137844
TEST_F(PublicBugs, OutputsInASharedPoolLastUntilAnotherGraphRuns) {
  for (const bool kept : {true, false}) {
    for (int order = 0; order < 16; ++order) {
      const PrivatePool pool;
      const at::Tensor x = ramp({64});
      at::Tensor outputs[2];
      std::unique_ptr<device::Graph> graphs[2];
      graphs[0] = capture(pool, [&] { outputs[0] = at::tanh(x) * 2; });
      void* const place = outputs[0].data_ptr();
      if (!kept) outputs[0] = at::from_blob(place, {64}, x.options());
      graphs[1] = capture(pool, [&] { outputs[1] = at::sin(x) * 3; });
      EXPECT_EQ(outputs[1].data_ptr() == place, !kept);
      const at::Tensor right[] = {at::tanh(x) * 2, at::sin(x) * 3};
      std::set<int> ran;
      for (int bit = 0; bit < 4; ++bit) {
        const int graph = (order >> bit) & 1;
        graphs[graph]->replay();
        EXPECT_TRUE(same_bytes(outputs[graph], right[graph])) << "read at once, order " << order;
        ran.insert(graph);
        for (const int earlier : ran) {
          EXPECT_EQ(same_bytes(outputs[earlier], right[earlier]), kept || earlier == graph)
              << "read later, order " << order;
        }
      }
    }
  }
}

// 64: a workspace that is made inside a capture takes the block of an earlier temporary of the same
// graph, and every replay overwrites it. https://github.com/ROCm/aiter/pull/5393
TEST_F(PublicBugs, AWorkspaceBornInACaptureIsOverwrittenByReplays) {
  for (const bool born_before : {true, false}) {
    for (const std::int64_t elements : {16, 1 << 10, 1 << 19, 5 << 20}) {
      const PrivatePool pool;
      const at::Tensor x = ramp({elements});
      at::Tensor workspace, y;
      if (born_before) workspace = at::empty_like(x);
      const auto graph = capture(pool, [&] {
        const void* const block = at::exp(x).const_data_ptr();  // a temporary
        if (!born_before) workspace = at::empty_like(x);
        EXPECT_EQ(workspace.const_data_ptr() == block, !born_before);
        y = x + 1;
      });
      workspace.fill_(7);
      graph->replay();
      EXPECT_EQ(same_bytes(workspace, at::full_like(workspace, 7)), born_before) << elements;
      EXPECT_TRUE(same_bytes(y, x + 1));
    }
  }
}

// How many places `layers` temporaries take in one capture. Each is written on the main stream and
// read on the side stream, which reads it into an output of its own.
struct Temporaries {
  enum class Keep {
    kRecorded,     // dies at once, with its use on the side stream recorded
    kUntilJoined,  // held until the main stream has waited for the side stream
    kWrongJoin,    // held until a third stream has waited for the side stream
  };
  Keep keep = Keep::kRecorded;
  bool join_each = true;
  int layers = 8;

  std::size_t places = 0;
  int wrong_seeds = 0;

  void run() {
    constexpr std::int64_t kElements = 1 << 18;  // 1 MiB
    const Stream main = c10::cuda::getCurrentCUDAStream(), side = other_stream();
    Stream third = other_stream();
    while (third == side) third = other_stream();
    const PrivatePool pool;
    Tensors reads;
    for (int i = 0; i < layers; ++i) reads.push_back(at::zeros({kElements}, at::kCUDA));
    std::set<const void*> addresses;
    const auto graph = capture(pool, [&] {
      for (int i = 0; i < layers; ++i) {
        at::Tensor temporary = at::full({kElements}, i + 1, reads[i].options());
        addresses.insert(temporary.const_data_ptr());
        wait_for(side, main);
        {
          const c10::cuda::CUDAStreamGuard on_side(side);
          reads[i].copy_(temporary);
        }
        if (keep == Keep::kRecorded) {
          temporary.record_stream(side.unwrap());
          temporary = at::Tensor();
        }
        if (join_each) wait_for(keep == Keep::kWrongJoin ? third : main, side);
      }
      wait_for(main, side);
      if (keep == Keep::kWrongJoin) wait_for(main, third);
    });
    places = addresses.size();
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      for (at::Tensor& read : reads) read.zero_();
      device::synchronise();
      device::configure({.order_seed = seed});
      graph->replay();
      device::synchronise();
      device::configure({});
      bool right = true;
      for (int i = 0; i < layers; ++i)
        right = right && same_bytes(reads[i], at::full_like(reads[i], i + 1));
      wrong_seeds += !right;
    }
  }
};

Temporaries measure(Temporaries temporaries) {
  temporaries.run();
  return temporaries;
}

// 69, 70: blocks with uses on other streams come back only after the capture, so that a captured
// graph grows with each layer. https://github.com/pytorch/pytorch/pull/155658
// https://github.com/ai-dynamo/nixl/pull/2149: held by reference until the streams have joined, and
// not recorded, they do not.
TEST_F(PublicBugs, RecordedUsesMakeACaptureGrowWithItsLayers) {
  using Keep = Temporaries::Keep;
  for (int layers = 1; layers <= 8; ++layers) {
    const Temporaries recorded = measure({.keep = Keep::kRecorded, .layers = layers});
    EXPECT_EQ(recorded.places, static_cast<std::size_t>(layers));
    EXPECT_EQ(recorded.wrong_seeds, 0);
    const Temporaries held = measure({.keep = Keep::kUntilJoined, .layers = layers});
    EXPECT_EQ(held.places, 1u);
    EXPECT_EQ(held.wrong_seeds, 0);
  }
}

// 68: the option that brings such blocks back inside the capture, once every stream has joined.
// https://github.com/pytorch/pytorch/pull/158352
TEST_F(PublicBugs, RecordedBlocksAreReusedInACaptureAfterTheJoinAndNotBefore) {
  for (const bool join_each : {true, false}) {
    for (const bool option : {false, true}) {
      const ReuseSetting setting(option);
      const Temporaries found = measure({.join_each = join_each, .layers = 20});
      EXPECT_EQ(found.places < 20u, option && join_each) << found.places;
      EXPECT_EQ(found.wrong_seeds, 0);
    }
  }
}

// 71: who releases by hand what another stream uses must have waited on the stream that gets the
// block next. https://github.com/NVIDIA/Megatron-LM/pull/4383
TEST_F(PublicBugs, AReleaseAfterAWaitOfAnotherStreamIsTooEarly) {
  const Temporaries found = measure({.keep = Temporaries::Keep::kWrongJoin});
  EXPECT_EQ(found.places, 1u);
  // Other hardware has one order of work, which may be a lucky one.
  if (device::capabilities().simulated) {
    EXPECT_GT(found.wrong_seeds, 0);
  }
}

// K11: emptying the cache while somebody captures gives back the segments of pools that died, which
// the device refuses, and the capture is lost. The death of a graph and its pool alone is harmless.
TEST_F(PublicBugs, EmptyingTheCacheInSomebodysCaptureSpoilsIt) {
  for (const bool empty : {false, true}) {
    const at::Tensor x = ramp({64});
    auto dying_pool = std::make_unique<PrivatePool>();
    at::Tensor y;
    auto dying = capture(*dying_pool, [&] { y = x * 2; });
    const PrivatePool pool;
    at::Tensor z;
    std::unique_ptr<device::Graph> graph;
    const std::string error = error_of([&] {
      graph = capture(pool, [&] {
        y = at::Tensor();
        dying.reset();
        dying_pool.reset();
        if (empty) caching::emptyCache();
        z = x + 1;
      });
    });
    if (empty) {
      EXPECT_NE(error.find("not permitted when stream is capturing"), std::string::npos) << error;
      graph = capture(pool, [&] { z = x + 1; });
    }
    graph->replay();
    EXPECT_TRUE(same_bytes(z, x + 1));
  }
}

// 37: a capture that is refused half way must not leave the generator in it; later random numbers
// threw "Offset increment outside graph capture".
// https://github.com/ace-step/ACE-Step-1.5/issues/587
TEST_F(PublicBugs, RandomNumbersGoOnAfterARefusedCapture) {
  const auto draw = [] { return at::empty({8}, at::kCUDA).uniform_(); };
  at::Generator generator = device::generator();
  generator.set_current_seed(11);
  const at::Tensor first = draw(), second = draw();
  const auto refused = [&](const std::function<void()>& capturing) {
    generator.set_current_seed(11);
    EXPECT_TRUE(same_bytes(draw(), first));
    EXPECT_NE(error_of(capturing), "");
    EXPECT_TRUE(same_bytes(draw(), second));
  };
  const PrivatePool pool;
  refused([&] {
    const c10::cuda::CUDAStreamGuard legacy(c10::cuda::getDefaultCUDAStream());
    capture(pool, draw);
  });
  refused([&] {
    capture(pool, [&] {
      draw();
      throw std::runtime_error("in capture");
    });
  });
  refused([&] { capture(pool, [&] { draw().cpu(); }); });
  refused([&] { capture(pool, [&] { capture(pool, draw); }); });
}

// 53: a generator that the capture was not told of would give every replay the same numbers.
// https://github.com/pytorch/pytorch/issues/91950
TEST_F(PublicBugs, AGeneratorThatIsNotRegisteredIsRefusedInACapture) {
  const at::Generator known = device::generator().clone(), unknown = device::generator().clone();
  const PrivatePool pool;
  for (const bool first : {true, false}) {
    const auto graph = device::make_graph();
    graph->register_generator(known);
    graph->begin_capture(pool.id());
    at::Tensor x = at::empty({8}, at::kCUDA);
    if (first) x.uniform_(0, 1, known);
    EXPECT_NE(error_of([&] { x.uniform_(0, 1, unknown); }).find("not in capture mode"),
              std::string::npos);
    graph->abandon();
  }
  at::empty({8}, at::kCUDA).uniform_(0, 1, unknown);
}

// 35: a parameter's AccumulateGrad node remembers the stream of the warm-up that made it. If that
// was the default stream and something keeps the node alive, every captured backward to the
// parameter fails. What the runtime does about it: public_bugs_capture_test.cc.
// https://github.com/pytorch/pytorch/pull/180090
TEST_F(PublicBugs, ABackwardInACaptureFailsOnNodesOfTheDefaultStream) {
  for (const bool of_default_stream : {false, true}) {
    for (const bool kept : {false, true}) {
      for (const bool accumulate : {false, true}) {
        const at::Tensor x = ramp({4, 4});
        const at::Tensor weight = ramp({4, 4}).requires_grad_(true);
        at::Tensor warm;
        {
          const c10::cuda::CUDAStreamGuard on(of_default_stream
                                                  ? c10::cuda::getDefaultCUDAStream()
                                                  : c10::cuda::getCurrentCUDAStream());
          warm = (weight * weight).sum();
          torch::autograd::backward({warm}, {}, /*retain_graph=*/true);
        }
        if (!kept) warm = at::Tensor();
        const PrivatePool pool;
        const std::string error = error_of([&] {
          capture(pool, [&] {
            const at::Tensor y = (x * weight).sum();
            accumulate ? torch::autograd::backward({y})
                       : void(torch::autograd::grad({y}, {weight}));
          });
        });
        EXPECT_EQ(
            error.find("would make the legacy stream depend on a capturing") != std::string::npos,
            of_default_stream && kept)
            << error;
        EXPECT_TRUE(same_bytes(x + 0, x)) << "the device goes on";
      }
    }
  }
}

}  // namespace
}  // namespace slotgraph::properties

// Random operators: the same stream of values eagerly and from replays, drawn from the device's own
// generator.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include "core/device/host/test_support.h"
#include "core/emulation/control.h"
#include "core/emulation/failing_call.h"

namespace slotgraph::device {
namespace {

using Tensors = std::vector<at::Tensor>;

struct Draw {
  const char* name;
  std::function<Tensors()> call;
};

at::TensorOptions options(at::ScalarType type = at::kFloat) {
  return at::TensorOptions(at::kCUDA).dtype(type);
}

const std::vector<Draw>& draws() {
  static const auto& list = *new std::vector<Draw>{
      {"uniform_", [] { return Tensors{at::empty({7}, options()).uniform_(-1, 2)}; }},
      {"normal_",
       [] {
         return Tensors{at::empty({5, 3}, options(at::kDouble)).normal_(1, 2)};
       }},
      {"bernoulli_.float", [] { return Tensors{at::empty({9}, options()).bernoulli_(0.3)}; }},
      {"bernoulli_.Tensor",
       [] { return Tensors{at::empty({9}, options()).bernoulli_(at::full({9}, 0.6, options()))}; }},
      {"bernoulli", [] { return Tensors{at::bernoulli(at::full({6}, 0.5, options()))}; }},
      {"random_", [] { return Tensors{at::empty({9}, options(at::kLong)).random_()}; }},
      {"random_.to", [] { return Tensors{at::empty({9}, options(at::kLong)).random_(10)}; }},
      {"random_.from", [] { return Tensors{at::empty({9}, options(at::kLong)).random_(-5, 5)}; }},
      {"exponential_", [] { return Tensors{at::empty({4}, options()).exponential_(2)}; }},
      {"native_dropout",
       [] {
         const auto [kept, mask] = at::native_dropout(at::ones({10}, options()), 0.4, true);
         return Tensors{kept, mask};
       }},
      {"dropout", [] { return Tensors{at::dropout(at::ones({11}, options()), 0.5, true)}; }},
      {"rand", [] { return Tensors{at::rand({3}, options())}; }},
      {"randn",
       [] {
         return Tensors{at::randn({2, 2}, options())};
       }},
      {"randint", [] { return Tensors{at::randint(3, 9, {4}, options(at::kLong))}; }},
      {"rand_like",
       [] {
         return Tensors{at::rand_like(at::ones({3, 2}, options(at::kBFloat16)))};
       }},
  };
  return list;
}

void seed(std::uint64_t value) {
  at::Generator generator = device::generator();
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(value);
}

void append(Tensors& all, const Tensors& more) {
  for (const at::Tensor& tensor : more) all.push_back(tensor.to(at::kCPU));
}

void expect_equal(const Tensors& found, const Tensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(same_bytes(found[i], expected[i])) << i << "\n" << found[i] << expected[i];
}

struct Random : ::testing::Test {
  static void SetUpTestSuite() { initialise(); }
  Random() { synchronise(); }
  ~Random() override { synchronise(); }
  c10::cuda::CUDAStreamGuard guard{c10::cuda::getStreamFromPool()};
  ScopedPool pool;
};

TEST_F(Random, ReplaysContinueTheStreamOfEagerExecution) {
  for (const Draw& draw : draws()) {
    SCOPED_TRACE(draw.name);
    Tensors expected, found;
    seed(11);
    for (int i = 0; i < 4; ++i) append(expected, draw.call());
    seed(11);
    append(found, draw.call());  // eager first, then three replays
    synchronise();
    Tensors outputs;
    const auto graph = capture(pool.id(), [&] { outputs = draw.call(); });
    for (int i = 0; i < 3; ++i) {
      graph->replay();
      append(found, outputs);
    }
    expect_equal(found, expected);
  }
}

TEST_F(Random, OneGraphWithManyDrawsGivesTheStreamOfEagerExecution) {
  const auto all = [] {
    Tensors result;
    for (const Draw& draw : draws()) {
      for (const at::Tensor& tensor : draw.call()) result.push_back(tensor);
    }
    return result;
  };
  Tensors expected, found, outputs;
  seed(5);
  for (int i = 0; i < 3; ++i) append(expected, all());
  seed(5);
  const std::uint64_t before = generator().get_offset();
  const auto graph = capture(pool.id(), [&] { outputs = all(); });
  EXPECT_EQ(generator().get_offset(), before) << "a capture draws nothing";
  for (int i = 0; i < 3; ++i) {
    graph->replay();
    append(found, outputs);
  }
  expect_equal(found, expected);
}

TEST_F(Random, InterleavedGraphsDrawInTheOrderOfTheirReplays) {
  const auto first = [] { return Tensors{at::rand({5}, options())}; };
  const auto second = [] { return Tensors{at::randn({3}, options()), at::rand({1}, options())}; };
  const std::vector<int> order{0, 1, 1, 0, 2, 0, 1};  // 2: an eager draw
  Tensors expected, found, outputs[2];
  seed(21);
  for (const int which : order) append(expected, which == 1 ? second() : first());
  seed(21);
  const auto graph_0 = capture(pool.id(), [&] { outputs[0] = first(); });
  const auto graph_1 = capture(pool.id(), [&] { outputs[1] = second(); });
  for (const int which : order) {
    if (which == 2) {
      append(found, first());
      continue;
    }
    (which == 0 ? graph_0 : graph_1)->replay();
    append(found, outputs[which]);
  }
  expect_equal(found, expected);
}

// The state of each replay travels in stream order, so nothing needs to wait between them.
TEST_F(Random, ReplaysQueuedTogetherKeepTheirOwnState) {
  Tensors expected, found;
  seed(31);
  for (int i = 0; i < 4; ++i) append(expected, {at::rand({5}, options())});
  for (std::uint64_t order = 0; order < 20; ++order) {
    const ScopedSimulation simulation({.order_seed = order});
    seed(31);
    at::Tensor output;
    const auto graph = capture(pool.id(), [&] { output = at::rand({5}, options()); });
    Tensors copies;
    for (int i = 0; i < 4; ++i) {
      graph->replay();
      copies.push_back(output.clone());
    }
    found.clear();
    append(found, copies);
    expect_equal(found, expected);
  }
}

TEST_F(Random, TheOffsetAdvancesByWholeGroupsOfFour) {
  for (const std::int64_t n : {1, 3, 4, 5, 8, 9, 1000, 1001}) {
    const auto advance = [&](const std::function<void()>& call) {
      const std::uint64_t before = generator().get_offset();
      call();
      return generator().get_offset() - before;
    };
    const std::uint64_t expected = 4 * ((static_cast<std::uint64_t>(n) + 3) / 4);
    EXPECT_EQ(advance([&] { at::rand({n}, options()); }), expected);
    EXPECT_EQ(advance([&] { at::empty({n}, options()).bernoulli_(0.5); }), expected);
    EXPECT_EQ(advance([&] { at::dropout(at::ones({n}, options()), 0.5, true); }), expected);
    EXPECT_EQ(advance([&] { at::randint(10, {n}, options(at::kLong)); }), expected);
    EXPECT_EQ(advance([&] { at::dropout(at::ones({n}, options()), 0.5, false); }), 0u);
    synchronise();
    const auto graph = capture(pool.id(), [&] { at::rand({n}, options()); });
    EXPECT_EQ(advance([&] { graph->replay(); }), expected);
  }
  const std::uint64_t before = generator().get_offset();
  at::rand({0}, options());
  EXPECT_EQ(generator().get_offset(), before);
}

TEST_F(Random, TheCpuGeneratorIsNotTouched) {
  at::Generator cpu = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = cpu.get_state().clone();
  for (const Draw& draw : draws()) {
    draw.call();
    synchronise();
    EXPECT_TRUE(at::equal(cpu.get_state(), before)) << draw.name;
  }
}

TEST_F(Random, TheSameSeedGivesTheSameValuesAndAnotherSeedOthers) {
  for (const Draw& draw : draws()) {
    SCOPED_TRACE(draw.name);
    Tensors runs[3];
    for (const std::uint64_t run : {0, 1, 2}) {
      seed(run < 2 ? 3 : 4);
      for (int i = 0; i < 4; ++i) append(runs[run], draw.call());
    }
    expect_equal(runs[0], runs[1]);
    bool same = true;
    for (std::size_t i = 0; i < runs[0].size(); ++i)
      same = same && same_bytes(runs[0][i], runs[2][i]);
    EXPECT_FALSE(same);
  }
}

TEST_F(Random, TheStateCanBeSavedAndRestored) {
  at::Generator generator = device::generator();
  seed(8);
  at::rand({6}, options());
  const at::Tensor state = generator.get_state();
  const at::Tensor first = at::rand({5}, options()).to(at::kCPU);
  generator.set_state(state);
  EXPECT_EQ(generator.get_offset(), 8u);
  EXPECT_EQ(generator.current_seed(), 8u);
  EXPECT_TRUE(same_bytes(at::rand({5}, options()), first));
  generator.set_offset(8);
  EXPECT_TRUE(same_bytes(at::rand({5}, options()), first));
}

TEST_F(Random, AnOwnGeneratorLeavesTheDefaultAlone) {
  seed(2);
  const std::uint64_t before = generator().get_offset();
  at::Generator own = generator().clone();
  const at::Tensor x = at::rand({4}, own, options()).to(at::kCPU);
  EXPECT_EQ(generator().get_offset(), before);
  EXPECT_EQ(own.get_offset(), 4u);
  EXPECT_TRUE(same_bytes(at::rand({4}, options()), x));
  EXPECT_NE(error_of([] {
              at::rand({4}, at::detail::getDefaultCPUGenerator(), options());
            }).find("generator"),
            std::string::npos);
}

TEST_F(Random, TheGeneratorCannotBeChangedUnderCapture) {
  auto graph = make_graph();
  graph->begin_capture(pool.id());
  EXPECT_NE(error_of([] { seed(1); }).find("captured"), std::string::npos);
  EXPECT_NE(error_of([] { generator().set_offset(4); }).find("captured"), std::string::npos);
  graph->abandon();
  seed(1);
}

// Y-13: nothing keeps a generator that was registered with a graph whose capture never was, and it
// is no graph's any more.
TEST_F(Random, AGraphThatWasNeverCapturedLeavesItsGeneratorsAlone) {
  at::Generator own = generator().clone();
  const auto holders = [&] {
    return c10::raw::intrusive_ptr::use_count(own.unsafeGetGeneratorImpl());
  };
  const auto before = holders();
  for (const std::string way : {"never begun", "on the default stream", "refused by the device"}) {
    SCOPED_TRACE(way);
    {
      const auto graph = make_graph();
      graph->register_generator(own);
      EXPECT_GT(holders(), before);
      if (way == "on the default stream") {
        const c10::cuda::CUDAStreamGuard on(c10::cuda::getDefaultCUDAStream());
        EXPECT_NE(error_of([&] { graph->begin_capture(pool.id()); }).find("stream"),
                  std::string::npos);
      } else if (way == "refused by the device") {
        {
          const slotgraph::testing::FailingCall failing("cudaStreamBeginCapture", 1,
                                             cudaErrorMemoryAllocation);
          EXPECT_NE(error_of([&] { graph->begin_capture(pool.id()); }), "");
        }
        EXPECT_NE(error_of([&] { own.set_current_seed(1); }), "") << "until it is abandoned";
      }
    }
    EXPECT_EQ(holders(), before);
    EXPECT_EQ(error_of([&] { own.set_current_seed(1); }), "");
    EXPECT_EQ(error_of([] { seed(1); }), "");
  }
}

// Each value lies where it belongs, and means are within five standard errors.
TEST_F(Random, Distributions) {
  seed(1234);
  const std::int64_t n = 40000;
  const auto mean = [](const at::Tensor& x) {
    return x.to(at::kCPU, at::kDouble).mean().item<double>();
  };
  const auto deviation = [](const at::Tensor& x) {
    return x.to(at::kCPU, at::kDouble).std().item<double>();
  };
  const auto within = [](const at::Tensor& x, double from, double to) {
    const at::Tensor host = x.to(at::kCPU, at::kDouble);
    return host.min().item<double>() >= from && host.max().item<double>() <= to;
  };
  const at::Tensor uniform = at::empty({n}, options()).uniform_(-1, 3);
  EXPECT_TRUE(within(uniform, -1, 3));
  EXPECT_NEAR(mean(uniform), 1, 0.03);
  EXPECT_NEAR(deviation(uniform), 4 / std::sqrt(12.0), 0.03);
  const at::Tensor normal = at::empty({n}, options()).normal_(2, 3);
  EXPECT_NEAR(mean(normal), 2, 0.075);
  EXPECT_NEAR(deviation(normal), 3, 0.06);
  EXPECT_NEAR(mean(at::empty({n}, options()).bernoulli_(0.3)), 0.3, 0.012);
  const at::Tensor exponential = at::empty({n}, options()).exponential_(2);
  EXPECT_TRUE(within(exponential, 0, 20));
  EXPECT_NEAR(mean(exponential), 0.5, 0.0125);
  const at::Tensor integers = at::randint(-5, 5, {n}, options(at::kLong));
  EXPECT_TRUE(within(integers, -5, 4));
  EXPECT_NEAR(mean(integers), -0.5, 0.075);
  const auto [kept, mask] = at::native_dropout(at::ones({n}, options()), 0.25, true);
  EXPECT_NEAR(mean(mask), 0.75, 0.012);
  EXPECT_NEAR(mean(kept), 1, 0.015);
}

TEST_F(Random, RandomOfSmallTypesStaysInRange) {
  for (const at::ScalarType type : {at::kChar, at::kByte, at::kBool, at::kShort, at::kInt}) {
    seed(77);
    const at::Tensor x = at::empty({4000}, options(type)).random_().to(at::kCPU, at::kLong);
    const std::int64_t largest = type == at::kChar   ? 127
                                 : type == at::kBool ? 1
                                 : type == at::kByte ? 255
                                                     : 32767;
    EXPECT_GE(x.min().item<std::int64_t>(), 0) << type;
    if (type != at::kInt) {
      EXPECT_LE(x.max().item<std::int64_t>(), largest) << type;
    }
    EXPECT_GT(x.max().item<std::int64_t>(), largest / 2) << type;
  }
}

}  // namespace
}  // namespace slotgraph::device

// Trials and sweeps on small operations of the real allocator.
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <gtest/gtest.h>

#include "core/device/device.h"
#include "core/error.h"
#include "fuzz/fault/state.h"
#include "fuzz/fault/sweep.h"

namespace slotgraph::fuzz {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

constexpr std::int64_t kSegment = std::int64_t{32} << 20;

const Point kMalloc{"cudaMalloc", "warm_up"};

struct SweepTest : testing::Test {
  SweepTest() { device::initialise(); }

  // Three segments, and one step before each.
  Operation three_segments() {
    Operation operation;
    operation.prepare = [this] { before = StateSnapshot::take({}); };
    operation.run = [] {
      const trace::PhaseScope phase(trace::Phase::warm_up);
      std::vector<at::Tensor> tensors;
      for (int i = 0; i < 3; ++i) {
        trace::reached(trace::Step::staging);
        tensors.push_back(at::empty({kSegment}, at::TensorOptions(at::kCUDA).dtype(at::kByte)));
      }
    };
    operation.contracts = {
        {"state", [this] { return StateSnapshot::take({}).differences(before); }}};
    return operation;
  }

  StateSnapshot before;
};

std::vector<std::string> errors_of(const std::vector<Trial>& trials) {
  std::vector<std::string> errors;
  for (const Trial& trial : trials) errors.push_back(trial.error.substr(0, 18));
  return errors;
}

void expect_all_hold(const std::vector<Trial>& trials) {
  for (const Trial& trial : trials) {
    EXPECT_TRUE(trial.findings.empty())
        << to_string(trial.injection) << ": " << testing::PrintToString(trial.findings);
  }
}

// The allocator frees what it caches and tries again: one failure is absorbed.
TEST_F(SweepTest, EndsWithTheFirstRunInWhichNothingFires) {
  const std::vector<Trial> trials = run_sweep(three_segments(), {{kMalloc, 1, Fault::kOnce, 0}});
  ASSERT_EQ(trials.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(trials[i].injection.nth, i + 1);
    EXPECT_EQ(trials[i].fired, i < 3 ? 1 : 0);
    EXPECT_EQ(trials[i].error, "");
  }
  expect_all_hold(trials);
}

TEST_F(SweepTest, APersistentFailureOutlastsTheSecondAttempt) {
  const std::vector<Trial> trials =
      run_sweep(three_segments(), {{kMalloc, 1, Fault::kPersistent, 0}});
  EXPECT_EQ(errors_of(trials), (std::vector<std::string>{"CUDA out of memory", "CUDA out of memory",
                                                         "CUDA out of memory", ""}));
  EXPECT_EQ(trials[0].fired, 2);
  expect_all_hold(trials);
}

TEST_F(SweepTest, StepsThrow) {
  const std::vector<Trial> trials =
      run_sweep(three_segments(), {{{"staging", "warm_up"}, 1, Fault::kOnce, 0}});
  ASSERT_EQ(trials.size(), 4u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(trials[i].error, "injected at step staging");
  expect_all_hold(trials);
}

// The second failure goes through every point after the first one.
TEST_F(SweepTest, PairsEndWhenTheSecondNoLongerFires) {
  Operation operation = three_segments();
  operation.run = [] {
    const trace::PhaseScope phase(trace::Phase::switch_pool);
    try {
      trace::reached(trace::Step::before_setter);
    } catch (const std::exception&) {
      trace::reached(trace::Step::rollback_detach);
      trace::reached(trace::Step::rollback_restore);
      throw;
    }
  };
  const std::vector<Trial> trials =
      run_sweep(operation, {{{"before_setter", "switch_pool"}, 1, Fault::kOnce, 1}});
  EXPECT_EQ(errors_of(trials), (std::vector<std::string>{"injected at step r", "injected at step r",
                                                         "injected at step b"}));
  EXPECT_EQ(trials.at(1).error, "injected at step rollback_restore");
  EXPECT_EQ(trials.at(1).fired, 2);
  EXPECT_EQ(trials.at(2).fired, 1);
  expect_all_hold(trials);
}

TEST_F(SweepTest, PointsInOtherPhasesAndOutsideAreLeftAlone) {
  EXPECT_EQ(try_once(three_segments(), {{"cudaMalloc", "layout"}, 1, Fault::kOnce, 0}).fired, 0);
  EXPECT_EQ(try_once(three_segments(), {{"cudaMalloc", "*"}, 1, Fault::kOnce, 0}).fired, 1);
  Operation operation = three_segments();
  operation.run = [] {
    (void)at::empty({kSegment}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
  };
  EXPECT_EQ(try_once(operation, {{"cudaMalloc", "*"}, 1, Fault::kOnce, 0}).fired, 0);
}

// What a sweep is for: an operation that keeps memory when it fails, one that hides the failure,
// one that changes it, and a contract that itself throws.
TEST_F(SweepTest, BrokenContractsAreFound) {
  static at::Tensor& kept = *new at::Tensor();
  Operation operation = three_segments();
  const Injection second{{"staging", "warm_up"}, 2, Fault::kOnce, 0};
  operation.run = [] {
    const trace::PhaseScope phase(trace::Phase::warm_up);
    trace::reached(trace::Step::staging);
    kept = at::empty({kSegment}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
    trace::reached(trace::Step::staging);
    kept.reset();
  };
  const Trial leaks = try_once(operation, second);
  kept.reset();
  ASSERT_FALSE(leaks.findings.empty());
  EXPECT_NE(testing::PrintToString(leaks.findings).find("state: allocated bytes"),
            std::string::npos);

  operation.run = [inner = three_segments().run] {
    try {
      inner();
    } catch (const std::exception&) {
      throw std::runtime_error("something else");
    }
  };
  EXPECT_EQ(try_once(operation, second).findings.at(0),
            "error: found `something else`, expected one that names the fault");

  operation = three_segments();
  operation.contracts = {
      {"odd", []() -> std::vector<std::string> { throw std::runtime_error("x"); }}};
  EXPECT_EQ(try_once(operation, second).findings.at(0), "odd: threw x");
}

// Each recorded class has the calls of one place; the numbers find them again.
TEST_F(SweepTest, RecordingTellsPlacesApart) {
  Injector& injector = Injector::instance();
  caching::emptyCache();
  injector.record();
  three_segments().run();
  EXPECT_EQ(injector.disarm(), 0);
  const auto& digests = injector.reached_points().at(kMalloc);
  ASSERT_EQ(digests.size(), 3u);
  EXPECT_EQ(digests[0], digests[1]) << "one place";
  const auto& stack = injector.stacks().at(digests[0]);
  EXPECT_EQ(stack.at(0), "cudaMalloc");
  caching::emptyCache();
}

// An exception of any type ends the trial with the injector disarmed.
TEST_F(SweepTest, NothingLeavesTheInjectorArmed) {
  Operation operation = three_segments();
  operation.run = [] { throw 7; };
  EXPECT_THROW((void)try_once(operation, {kMalloc, 1, Fault::kPersistent, 0}), int);
  operation = three_segments();
  operation.run();
}

TEST(Sweep, IsCompleteOnlyIfEveryPointFiredAndThenNoLonger) {
  const Injection once{kMalloc, 1, Fault::kOnce, 0};
  Sweep sweep;
  sweep.add(once, Step::Next::kNone);
  sweep.add({kMalloc, 9, Fault::kOnce, 0}, Step::Next::kBeyond);
  EXPECT_FALSE(sweep.totals().complete());
  sweep.took(sweep.take(), 1, true);
  EXPECT_FALSE(sweep.totals().complete()) << "there may be a tenth call";
  sweep.took(sweep.take(), 0, true);
  EXPECT_TRUE(sweep.empty());
  EXPECT_TRUE(sweep.totals().complete());

  Sweep missed;
  missed.add(once, Step::Next::kNone);
  missed.took(missed.take(), 0, true);
  EXPECT_FALSE(missed.totals().complete()) << "it did not fire";
  Sweep beyond;
  beyond.add(once, Step::Next::kBeyond);
  beyond.took(beyond.take(), 1, true);
  EXPECT_FALSE(beyond.totals().complete()) << "it fired beyond the last one";
  Sweep hung;
  hung.add(once, Step::Next::kBeyond);
  hung.took(hung.take(), 0, false);
  EXPECT_FALSE(hung.totals().complete());
}

TEST(Sweep, PairsAreFollowedAsFarAsTheyMay) {
  Sweep sweep(2);
  sweep.add({kMalloc, 1, Fault::kOnce, 1}, Step::Next::kMore);
  sweep.took(sweep.take(), 2, true);
  const Step second = sweep.take();
  EXPECT_EQ(second.injection.second, 2u);
  sweep.took(second, 2, true);
  EXPECT_TRUE(sweep.empty());
  EXPECT_EQ(sweep.totals().cut, 1u);
  EXPECT_FALSE(sweep.totals().complete());
  sweep.stop();
  EXPECT_TRUE(sweep.totals().stopped);
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Points, PatternsNamesAndPhases) {
  EXPECT_EQ(match_points("owner_detach@switch_pool").size(), 1u);
  EXPECT_EQ(match_points("owner_detach").size(), phase_names().size());
  EXPECT_EQ(match_points("cudaEvent*@warm_up").size(), 8u);
  EXPECT_EQ(to_string(match_points("cudaMalloc@warm_up")[0]), "cudaMalloc@warm_up");
  const std::string wrong = refusal([] { (void)match_points("cudaMaloc"); });
  EXPECT_NE(wrong.find("[T01]"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("one of cudaMalloc,"), std::string::npos) << wrong;
  EXPECT_NE(refusal([] { (void)match_points("cudaMalloc@warmup"); }).find("warm_up"),
            std::string::npos);
}

TEST(Points, InjectionsReadBack) {
  const Injection injection{{"after_setter", "switch_pool"}, 3, Fault::kPersistent, 2};
  const nlohmann::json json = to_json(injection);
  EXPECT_EQ(injection_from_json(JsonReader(json, "rule")), injection);
  EXPECT_EQ(to_string(injection), "after_setter@switch_pool#3 persistent, and point 2 after it");
  for (const auto& [field, value] : std::map<std::string, nlohmann::json>{{"point", "after_seter"},
                                                                          {"phase", "swich"},
                                                                          {"nth", 0},
                                                                          {"fault", "often"},
                                                                          {"second", -1}}) {
    nlohmann::json broken = json;
    broken[field] = value;
    EXPECT_NE(refusal([&] { (void)injection_from_json(JsonReader(broken, "rule")); }).find(field),
              std::string::npos)
        << field;
    broken.erase(field);
    EXPECT_NE(refusal([&] { (void)injection_from_json(JsonReader(broken, "rule")); }).find(field),
              std::string::npos)
        << field;
  }
}

}  // namespace
}  // namespace slotgraph::fuzz

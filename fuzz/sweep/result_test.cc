#include "fuzz/sweep/result.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"

namespace slotgraph::fuzz {
namespace {

const FatalTable& table() {
  static const auto& the_table = *new FatalTable(FatalTable::read("fuzz/sweep/fatal_points.csv"));
  return the_table;
}

Injection injection(const char* call, const char* phase, Fault fault = Fault::kOnce,
                    std::uint64_t second = 0) {
  return {{call, phase}, 1, fault, second};
}

const std::vector<std::string> kGuard{"cudaGetDevice", "c10::cuda::SetDevice",
                                      "c10::cuda::impl::CUDAGuardImpl::uncheckedSetDevice"};
constexpr const char* kTerminated = "terminate called after throwing\n";
constexpr const char* kFatal = "slotgraph: fatal: state cannot be restored\n";

Result judged(const Injection& injection, int code, const char* errors,
              const std::vector<std::string>& stack = kGuard, int fired = 1) {
  return judge_end("placement", injection, {code, errors, fired, stack}, table());
}

TEST(JudgeEnd, OnlyKnownEndsHold) {
  const Injection guard = injection("cudaGetDevice", "warm_up");
  EXPECT_EQ(judged(guard, 134, kTerminated).outcome, Outcome::kUpstreamFatal);
  EXPECT_EQ(judged(guard, 134, kTerminated).verdict, Verdict::kHolds);
  // Another call, another place, another end.
  EXPECT_EQ(judged(guard, 134, kTerminated, {"cudaFree", "uncheckedSetDevice"}).verdict,
            Verdict::kViolated);
  EXPECT_EQ(judged(guard, 134, kTerminated, {"cudaGetDevice", "main"}).verdict, Verdict::kViolated);
  EXPECT_EQ(judged(guard, 134, "").verdict, Verdict::kViolated);
  EXPECT_EQ(judged(guard, 139, kTerminated).verdict, Verdict::kViolated);
  EXPECT_EQ(judged(guard, 0, kTerminated).verdict, Verdict::kViolated);
}

TEST(JudgeEnd, TheRuntimeMayEndTheProcessOnlyForASecondFailure) {
  const Injection undoing = injection("cudaMemcpyAsync", "restore_state");
  EXPECT_EQ(judged(undoing, 70, kFatal).verdict, Verdict::kViolated) << "it is tried twice";
  EXPECT_EQ(judged(undoing, 70, kFatal, kGuard, 2).verdict, Verdict::kHolds);
  EXPECT_EQ(judged(undoing, 70, kFatal, kGuard, 2).outcome, Outcome::kFatal);
  EXPECT_EQ(judged(undoing, 70, "", kGuard, 2).verdict, Verdict::kViolated)
      << "without the message";
}

TEST(JudgeEnd, ALostDeviceMayEndTheProcessOnceItIsLost) {
  EXPECT_EQ(judged(injection("cudaFree", "warm_up", Fault::kSticky), 134, "").outcome,
            Outcome::kSticky);
  EXPECT_EQ(judged(injection("cudaFree", "warm_up", Fault::kSticky), 134, "", {}, 0).verdict,
            Verdict::kViolated)
      << "it ended before";
}

TEST(KindOfEnd, TellsOnePlaceFromAnother) {
  const auto kind = [](int code, const char* errors, const std::vector<std::string>& stack) {
    return kind_of_end({code, errors, 1, stack}, table());
  };
  EXPECT_EQ(kind(134, kTerminated, kGuard), "code 134, upstream: uncheckedSetDevice");
  EXPECT_EQ(kind(134, "a warning 7\nterminate called in 0x7f12 of 3\nmore", {}),
            "code 134, terminate called in # of #");
  EXPECT_EQ(kind(70, kFatal, kGuard), "code 70, slotgraph: fatal: state cannot be restored");
  EXPECT_EQ(kind(137, "", {}), "code 137");
}

TEST(FatalTable, BrokenLinesAreRefused) {
  const std::string path = testing::TempDir() + "table.csv";
  std::ofstream(path) << "call,frame,why\ncudaFree\n";
  try {
    (void)FatalTable::read(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.rule(), "F05");
    EXPECT_NE(std::string(error.what()).find(path + ":2"), std::string::npos);
  }
  EXPECT_THROW((void)FatalTable::read(path + ".none"), Error);
}

TEST(SweepSummary, IsCompleteOnlyIfEveryPointFiredAndThenNoLonger) {
  SweepSummary summary;
  summary.fault_points = summary.points_reached = 3;
  summary.points = summary.exhausted = 1;
  EXPECT_TRUE(summary.complete());
  for (auto* const number : {&summary.points_reached, &summary.exhausted}) {
    --*number;
    EXPECT_FALSE(summary.complete());
    ++*number;
  }
  summary.cut = 1;
  EXPECT_FALSE(summary.complete()) << "a pair that was not followed to its end";
  summary.cut = 0;
  summary.ended = false;
  EXPECT_FALSE(summary.complete());
  EXPECT_EQ(to_json(summary)["complete"], false);
}

}  // namespace
}  // namespace slotgraph::fuzz

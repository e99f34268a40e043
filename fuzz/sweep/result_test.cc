#include "fuzz/sweep/result.h"

#include <gtest/gtest.h>

namespace slotgraph::fuzz {
namespace {

const FatalTable& table() {
  static const auto& the_table = *new FatalTable(FatalTable::read("fuzz/fault/fatal_points.json"));
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
  return judge_end(Mode::kPlacement, injection, {code, errors, fired, stack}, table());
}

TEST(JudgeEnd, OnlyKnownEndsHold) {
  const Injection guard = injection("cudaGetDevice", "warm_up");
  EXPECT_EQ(judged(guard, 134, kTerminated).outcome, TrialOutcome::kUpstreamFatal);
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
  EXPECT_EQ(judged(undoing, 70, kFatal, kGuard, 2).outcome, TrialOutcome::kFatal);
  EXPECT_EQ(judged(undoing, 70, "", kGuard, 2).verdict, Verdict::kViolated)
      << "without the message";
}

TEST(JudgeEnd, ALostDeviceMayEndTheProcessOnceItIsLost) {
  EXPECT_EQ(judged(injection("cudaFree", "warm_up", Fault::kSticky), 134, "").outcome,
            TrialOutcome::kSticky);
  EXPECT_EQ(judged(injection("cudaFree", "warm_up", Fault::kSticky), 134, "", {}, 0).verdict,
            Verdict::kViolated)
      << "it ended before";
}

}  // namespace
}  // namespace slotgraph::fuzz

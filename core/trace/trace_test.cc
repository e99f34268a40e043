#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/trace/calls.h"
#include "core/trace/event_log.h"
#include "core/trace/fault_rules.h"
#include "core/trace/steps.h"

namespace slotgraph::trace {
namespace {

TEST(Calls, EveryNameFindsItsNumber) {
  for (int i = 0; i < kCallCount; ++i) EXPECT_EQ(find_call(kCallNames[i]), static_cast<Call>(i));
  EXPECT_EQ(find_call("cudaNothing"), std::nullopt);
}

TEST(FaultRules, OnceFailsExactlyTheNthCallCountedFromTheInstallation) {
  FaultRules rules;
  rules.on_call(Call::cudaMalloc);
  rules.install(Call::cudaMalloc, {.nth = 2, .persistent = false, .error = 7});
  EXPECT_EQ(rules.on_call(Call::cudaFree), std::nullopt);
  EXPECT_EQ(rules.on_call(Call::cudaMalloc), std::nullopt);
  EXPECT_EQ(rules.on_call(Call::cudaMalloc), 7);
  EXPECT_EQ(rules.on_call(Call::cudaMalloc), std::nullopt);
  EXPECT_EQ(rules.count(Call::cudaMalloc), 4u);
}

TEST(FaultRules, PersistentFailsFromThenOnUntilCleared) {
  FaultRules rules;
  rules.install(Call::cudaMalloc, {.nth = 2, .persistent = true, .error = 2});
  EXPECT_EQ(rules.on_call(Call::cudaMalloc), std::nullopt);
  EXPECT_EQ(rules.on_call(Call::cudaMalloc), 2);
  EXPECT_EQ(rules.on_call(Call::cudaMalloc), 2);
  rules.clear();
  EXPECT_EQ(rules.on_call(Call::cudaMalloc), std::nullopt);
}

TEST(EventLog, KeepsTheNewestEntriesAndPrintsThem) {
  EventLog log;
  log.set_limit(2);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    log.append(
        {.sequence = i, .call = Call::cudaFree, .thread = 1, .arguments = {255}, .result = 1});
  }
  ASSERT_EQ(log.entries().size(), 2u);
  EXPECT_EQ(to_string(log.entries().front()), "2 t1 cudaFree(0xff, 0x0, 0x0, 0x0) = 1");
  log.set_limit(0);
  log.append({});
  EXPECT_TRUE(log.entries().empty());
}

TEST(Phases, TheInnermostOfThisThreadCounts) {
  EXPECT_EQ(phase(), Phase::outside);
  {
    const PhaseScope call(Phase::call);
    {
      const PhaseScope layout(Phase::layout);
      EXPECT_EQ(phase_name(phase()), "layout");
      std::thread([] { EXPECT_EQ(phase(), Phase::outside); }).join();
    }
    EXPECT_EQ(phase(), Phase::call);
    try {
      const PhaseScope rollback(Phase::rollback);
      throw 1;
    } catch (int) {
      EXPECT_EQ(phase(), Phase::call);
    }
  }
  EXPECT_EQ(phase(), Phase::outside);
}

TEST(Steps, TheListenerHearsThemAndMayThrow) {
  struct Listener : StepListener {
    void reached(Step step) override {
      heard.emplace_back(step_name(step));
      if (step == Step::adoption) throw std::runtime_error("planted");
    }
    std::vector<std::string> heard;
  } listener;
  reached(Step::adoption);
  set_step_listener(&listener);
  reached(Step::staging);
  EXPECT_THROW(reached(Step::adoption), std::runtime_error);
  set_step_listener(nullptr);
  reached(Step::adoption);
  EXPECT_EQ(listener.heard, (std::vector<std::string>{"staging", "adoption"}));
}

}  // namespace
}  // namespace slotgraph::trace

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/trace/calls.h"
#include "core/trace/event_log.h"
#include "core/trace/steps.h"

namespace slotgraph::trace {
namespace {

TEST(Calls, EveryNameFindsItsNumber) {
  for (int i = 0; i < kCallCount; ++i) EXPECT_EQ(find_call(kCallNames[i]), static_cast<Call>(i));
  EXPECT_EQ(find_call("cudaNothing"), std::nullopt);
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

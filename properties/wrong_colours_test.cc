// Plans whose only fault is a colour: they are refused before anything runs or is allocated.
#include <c10/cuda/CUDACachingAllocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/plan/planner.h"
#include "properties/published_testing.h"

namespace slotgraph::properties {
namespace {

struct WrongColours : Published {};
using Pairs = std::set<std::pair<int, int>>;

Plan planned(const PipelineShape& shape, std::vector<int> layers, std::vector<int> cp_sizes,
             std::vector<int> counts, int ring_length = 0) {
  PlanRequest request;
  request.name = "wrong colours";
  request.shape = shape;
  request.layers_per_chunk = std::move(layers);
  request.cp_sizes = std::move(cp_sizes);
  request.counts = std::move(counts);
  request.ring_length = ring_length;
  return make_plan(request);
}

std::vector<Plan> plans() {
  return {planned({2, 0, 0, 0}, {2}, {2, 1}, {1, 2, 4}),
          planned({4, 1, 0, 0}, {1}, {4, 2, 1}, {4, 8}), planned({2, 0, 0, 0}, {1}, {1}, {1, 2}, 4),
          planned({2, 1, 2, 2}, {1, 2}, {2, 1}, {2, 4}),
          planned({2, 0, 3, 2}, {1, 0, 2}, {2, 1}, {2, 4})};
}

// Frames that are live together while the base order runs: by what is forwarded and not yet
// back-propagated, and by nothing of core/plan.
Pairs live_together(const Plan& plan) {
  Pairs pairs;
  std::set<int> live;
  for (const OrderEvent& event : events(plan.base_order)) {
    for (int layer = 0; layer < plan.layers_per_chunk[event.chunk]; ++layer) {
      const int frame = plan.frame(event.chunk, plan.slot_of(event.microbatch), layer);
      if (!event.forward) {
        live.erase(frame);
        continue;
      }
      for (const int other : live) pairs.emplace(std::min(frame, other), std::max(frame, other));
      live.insert(frame);
    }
  }
  return pairs;
}

// Places, as chunk * ring + slot, whose backwards return gradients one after the other.
Pairs successive(const Plan& plan) {
  Pairs pairs;
  int last = -1;
  for (const OrderEvent& event : events(plan.base_order)) {
    if (event.forward) continue;
    const bool returns = plan.layers_per_chunk[event.chunk] > 0;
    const int place = event.chunk * plan.ring_length + plan.slot_of(event.microbatch);
    if (returns && last >= 0) pairs.emplace(std::min(last, place), std::max(last, place));
    last = returns ? place : -1;
  }
  return pairs;
}

// A call that counts what it runs.
struct Call {
  explicit Call(Plan plan)
      : net(std::move(plan), {unary([this](const at::Tensor& x) {
              ++runs;
              return x * x;
            })},
            [](int) { return ones({4}); }) {}

  // Refused in every mode by this rule, before a module ran or anything was allocated.
  void expect_refused(const Plan& wrong, const std::string& expected) {
    net.plan = wrong;
    for (const Mode mode : slot_modes()) {
      const std::size_t before = testing::DeviceTest::allocated();
      const std::int64_t allocations = requests();
      EXPECT_EQ(rule([&] { net.capture(mode); }), expected) << static_cast<int>(mode);
      EXPECT_EQ(runs, 0);
      EXPECT_EQ(testing::DeviceTest::allocated(), before);
      EXPECT_EQ(requests(), allocations) << "nothing was allocated and freed either";
    }
  }
  static std::int64_t requests() {
    return c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocation[0].allocated;
  }

  int runs = 0;
  Net net;
};

TEST_F(WrongColours, FramesThatAreLiveTogetherMayNotShareAColour) {
  std::size_t refused = 0;
  for (const Plan& right : plans()) {
    EXPECT_EQ(rule([&] { check(right); }), "");
    Call call(right);
    for (const auto& [a, b] : live_together(right)) {
      Plan wrong = right;
      for (int variant = 0; variant < right.variants(); ++variant) {
        const int first = variant * right.frames();
        ASSERT_NE(right.slots[first + a].colour, right.slots[first + b].colour);
        wrong.slots[first + b].colour = right.slots[first + a].colour;
      }
      SCOPED_TRACE(fmt::format("ring {}, frames {} and {}", right.ring_length, a, b));
      call.expect_refused(wrong, "PL04");
      ++refused;
    }
  }
  EXPECT_GE(refused, 20u);
}

TEST_F(WrongColours, SuccessiveBackwardsMayNotShareAGradientColour) {
  std::size_t refused = 0;
  for (const Plan& right : plans()) {
    Call call(right);
    const auto colour = [&](Plan& plan, int place) -> int& {
      return plan.gradient_colours[place / right.ring_length][place % right.ring_length];
    };
    for (const auto& [a, b] : successive(right)) {
      Plan wrong = right;
      ASSERT_NE(colour(wrong, a), colour(wrong, b));
      colour(wrong, b) = colour(wrong, a);
      for (Slot& slot : wrong.slots)
        slot.gradient_colour = wrong.gradient_colours[slot.model_chunk][slot.physical_slot];
      SCOPED_TRACE(fmt::format("ring {}, places {} and {}", right.ring_length, a, b));
      call.expect_refused(wrong, "PL05");
      ++refused;
    }
  }
  EXPECT_GE(refused, 5u);
}

// What the two tests rely on: without the wrong colour the same calls are accepted.
TEST_F(WrongColours, TheRightPlansAreCaptured) {
  for (const Plan& right : plans()) {
    for (const Mode mode : slot_modes()) {
      Call call(right);
      EXPECT_EQ(rule([&] { call.net.capture(mode); }), "");
      EXPECT_GT(call.runs, 0);
    }
  }
}

}  // namespace
}  // namespace slotgraph::properties

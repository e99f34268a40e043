// Schedules beyond those of a pipeline, captures again and again, and where PyTorch's arrangement
// breaks.
#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "core/device/device.h"
#include "core/graph/testing/rig.h"
#include "core/testing/rule.h"

namespace slotgraph::properties {
namespace {

using testing::Rig;
using testing::rule;
using testing::same_bytes;

struct Exploration : testing::DeviceTest {};

// A flight of a branch with an input of its own, and what eager makes of it.
struct Flight {
  int branch;
  at::Tensor input, output, gradient;
};

Flight eager_flight(const Rig& rig, int branch, double start) {
  const at::Tensor x = testing::ramp(Rig::rows_of(branch), start).requires_grad_(true);
  const at::Tensor y = at::matmul(at::tanh(at::matmul(x, rig.weight)), rig.weight);
  return {branch, x, y.detach(), testing::gradient(y, x)};
}

int slot_of(int branch) { return branch % 2; }

// Events: index of a flight; its first occurrence is the forward, its second the backward. Returns
// the rule that stopped it, or `wrong` for a difference.
std::string play(CallableSet& set, const std::vector<Flight>& flights,
                 const std::vector<int>& events) {
  std::vector<Tensors> outputs(flights.size());
  std::string stopped;
  for (const int index : events) {
    const Flight& flight = flights[index];
    Tensors& out = outputs[index];
    if (out.empty()) {
      stopped = rule([&] { out = set.at(flight.branch).forward({{flight.input}, {}}); });
      if (!stopped.empty()) break;
      if (!same_bytes(out[0], flight.output)) return "wrong output";
      continue;
    }
    if (!same_bytes(out[0], flight.output)) return "output did not last until its backward";
    at::Tensor found;
    stopped = rule([&] { found = testing::gradient(out[0], flight.input); });
    if (!stopped.empty()) break;
    if (!same_bytes(found, flight.gradient)) return "wrong gradient";
    out = {at::Tensor()};
  }
  set.release();
  set.end_step();
  return stopped;
}

// What the plan allows: one flight in each physical slot.
std::string allowed(const std::vector<Flight>& flights, const std::vector<int>& events) {
  std::vector<bool> flying(flights.size());
  std::vector<bool> busy(2);
  for (const int index : events) {
    const int slot = slot_of(flights[index].branch);
    if (!flying[index] && busy[slot]) return "P06";
    busy[slot] = flying[index] = !flying[index];
  }
  return "";
}

TEST_F(Exploration, EveryOrderOfThreeFlightsIsRightOrRefused) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    const auto set = rig.capture(mode);
    int right = 0, refused = 0;
    for (int branches = 0; branches < 64; ++branches) {
      std::vector<Flight> flights;
      for (int i = 0; i < 3; ++i)
        flights.push_back(eager_flight(rig, (branches >> (2 * i)) % 4, 0.1 * i));
      std::vector<int> events{0, 0, 1, 1, 2, 2};
      do {
        const std::string expected = allowed(flights, events);
        ASSERT_EQ(play(*set, flights, events), expected)
            << fmt::format("mode {}, branches {}, events {}", static_cast<int>(mode), branches,
                           fmt::join(events, " "));
        (expected.empty() ? right : refused) += 1;
      } while (std::next_permutation(events.begin(), events.end()));
    }
    fmt::print("mode {}: {} orders right, {} refused\n", static_cast<int>(mode), right, refused);
    EXPECT_GT(right, 1000);
    EXPECT_GT(refused, 1000);
  }
}

// The guard comes before any copy.
TEST_F(Exploration, ARefusedForwardHasCopiedNothing) {
  for (const Mode mode : slot_modes()) {
    Rig rig;
    const auto set = rig.capture(mode);
    const Tensors out = set->at(0).forward(rig.samples[0]);
    const at::Tensor before = set->at(0).static_inputs()[0].clone();
    const at::Tensor other = testing::ramp(3, 9);
    EXPECT_EQ(rule([&] { set->at(0).forward({{other}, {}}); }), "P06");
    EXPECT_TRUE(same_bytes(set->at(0).static_inputs()[0], before));
  }
}

TEST_F(Exploration, FiveHundredCapturesAndThenANewPool) {
  const auto free_bytes = [] {
    device::synchronise();
    c10::cuda::CUDACachingAllocator::emptyCache();
    return device::memory_info().free_bytes;
  };
  for (const Mode mode : slot_modes()) {
    std::size_t first = 0;
    for (int i = 0; i < 167; ++i) {
      Rig rig;
      rig.options.warm_up_iterations = 1;
      const auto set = rig.capture(mode);
      if (i % 50 == 0) {
        const Tensors out = set->at(i % 4).forward(rig.samples[i % 4]);
        const Flight truth = eager_flight(rig, i % 4, 0);
        ASSERT_TRUE(same_bytes(out[0], truth.output)) << i;
      }
      const std::size_t reserved = set->memory().reserved_bytes;
      if (i == 0) first = reserved;
      ASSERT_EQ(reserved, first) << i;
    }
    const std::size_t before = free_bytes();
    {
      Rig rig;
      const auto set = rig.capture(mode);
    }
    EXPECT_EQ(free_bytes(), before);
  }
}

// PyTorch's arrangement, one pool for each variant: right in the captured order only. Where ring
// slots wrap, or backwards come first-in-first-out while the capture had them last-in-first-out,
// frames read what others wrote.
TEST_F(Exploration, PyTorchsArrangementBreaksWhenRingSlotsWrap) {
  const auto differing = [](Mode mode) {
    Rig rig;
    const auto set = rig.capture(mode);
    // Slots 0 and 1 are captured F0 F1 B0 B1; here slot 0 is entered again while slot 1 flies.
    int different = 0;
    const Flight a = eager_flight(rig, 0, 0.1), b = eager_flight(rig, 1, 0.4),
                 c = eager_flight(rig, 0, 0.7);
    const auto forward = [&](const Flight& flight) {
      return set->at(flight.branch).forward({{flight.input}, {}})[0];
    };
    const auto backward = [&](const Flight& flight, const at::Tensor& output) {
      different += !same_bytes(output, flight.output);
      different += !same_bytes(testing::gradient(output, flight.input), flight.gradient);
    };
    const at::Tensor ya = forward(a), yb = forward(b);
    backward(a, ya);
    const at::Tensor yc = forward(c);
    backward(b, yb);
    backward(c, yc);
    return different;
  };
  EXPECT_GT(differing(Mode::kPerVariant), 0);
  for (const Mode mode : graph_modes()) EXPECT_EQ(differing(mode), 0) << static_cast<int>(mode);
}

}  // namespace
}  // namespace slotgraph::properties

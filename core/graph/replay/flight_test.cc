#include "core/graph/replay/flight.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"

namespace slotgraph {
namespace {

// Branches 0 and 1: two variants of one frame. Branch 2: another frame of the same colour. Branch
// 3: free of both, with the gradient colour of branch 0.
FlightControl control() {
  return FlightControl({{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {0, 1, 0, 1, 1}, {1, 2, 1, 0, 0}});
}

std::string rule(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.rule();
  }
  return "";
}

TEST(FlightControl, EnteringAnOccupiedFrameOrColourIsRefused) {
  FlightControl flights = control();
  const auto generation = flights.enter(0);
  EXPECT_EQ(rule([&] { flights.enter(0); }), "P06");
  EXPECT_EQ(rule([&] { flights.enter(1); }), "P06") << "the same frame in another variant";
  EXPECT_EQ(rule([&] { flights.enter(2); }), "P06") << "another frame of the colour";
  EXPECT_EQ(rule([&] { flights.enter(3); }), "");
  flights.backward(0, generation);
  EXPECT_EQ(rule([&] { flights.enter(2); }), "");
}

TEST(FlightControl, OnlyTheNewestFlightRunsBackwardAndOnlyOnce) {
  FlightControl flights = control();
  const auto first = flights.enter(0);
  flights.leave(0, first);
  const auto second = flights.enter(0);
  EXPECT_EQ(rule([&] { flights.check_backward(0, first); }), "P07");
  EXPECT_EQ(rule([&] { flights.check_backward(1, second); }), "P07");
  EXPECT_EQ(rule([&] { flights.check_backward(0, second); }), "");
  flights.backward(0, second);
  EXPECT_EQ(rule([&] { flights.check_backward(0, second); }), "P07");
}

TEST(FlightControl, AnOldFlightCannotEndANewerOne) {
  FlightControl flights = control();
  const auto first = flights.enter(0);
  flights.leave(0, first);
  flights.enter(0);
  flights.leave(0, first);
  EXPECT_EQ(rule([&] { flights.enter(0); }), "P06");
}

TEST(FlightControl, GradientColourOfTheEventBeforeIsRefusedUntilItsLifeEnds) {
  for (const bool end_life : {false, true}) {
    FlightControl flights = control();
    const auto first = flights.enter(0);
    const auto second = flights.enter(3);
    flights.backward(0, first);
    if (end_life) flights.end_gradient_life();
    EXPECT_EQ(rule([&] { flights.check_backward(3, second); }), end_life ? "" : "P08");
  }
}

TEST(FlightControl, ResetEndsEveryFlight) {
  FlightControl flights = control();
  const auto generation = flights.enter(0);
  flights.release();
  EXPECT_EQ(rule([&] { flights.check_backward(0, generation); }), "P07");
  EXPECT_EQ(rule([&] { flights.enter(2); }), "");
}

}  // namespace
}  // namespace slotgraph

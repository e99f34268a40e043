// Which frames are in flight, and what may therefore be entered. Pure bookkeeping.
#ifndef CORE_GRAPH_REPLAY_FLIGHT_H_
#define CORE_GRAPH_REPLAY_FLIGHT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace slotgraph {

// What a branch shares with others. Branches of equal frame are variants of one frame.
struct FlightPlan {
  int colour = 0;
  int frame = 0;
  int chunk = 0;
  int physical_slot = 0;
  std::optional<int> gradient_colour;  // of the returned leading-input gradient, if it has one
};

// Not thread-safe: the caller holds the lock of its set over each check and what follows it.
class FlightControl {
 public:
  explicit FlightControl(std::vector<FlightPlan> branches)
      : branches_(std::move(branches)), generations_(branches_.size()) {}

  // Begins a flight and returns its generation. Throws Error P06.
  std::uint64_t enter(int branch);
  // Checks a backward of that flight; changes nothing. Throws Error: P07 the flight is over or not
  // the newest, P08 the gradient would overwrite that of the backward event before.
  void check_backward(int branch, std::uint64_t generation) const;
  // Notes the event and ends the flight.
  void backward(int branch, std::uint64_t generation);
  // The gradient of the newest backward event is no longer needed: an event without gradient came,
  // or a step ended.
  void end_gradient_life() { last_backward_.reset(); }
  // Ends the flight if it is still this one.
  void leave(int branch, std::uint64_t generation);
  void leave(int branch) { leave(branch, generations_[branch]); }
  // Ends all flights.
  void release();
  const FlightPlan& plan(int branch) const { return branches_[branch]; }

 private:
  struct Event {
    int chunk;
    int physical_slot;
    int colour;
  };
  std::vector<FlightPlan> branches_;
  std::vector<std::uint64_t> generations_;  // of the newest flight of each branch
  std::map<int, int> by_colour_;            // colour → branch in flight
  std::map<int, int> by_frame_;
  std::optional<Event> last_backward_;
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_REPLAY_FLIGHT_H_

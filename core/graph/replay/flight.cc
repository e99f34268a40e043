#include "core/graph/replay/flight.h"

#include <fmt/format.h>

#include "core/error.h"

namespace slotgraph {

std::uint64_t FlightControl::enter(int branch) {
  const FlightPlan& plan = branches_[branch];
  const auto refuse = [&](const char* what, int other) {
    throw Error(Error::kContract, {"P06",
                                   fmt::format("forward of branch {} (chunk {}, slot {})", branch,
                                               plan.chunk, plan.physical_slot),
                                   fmt::format("branch {} of the same {} in flight", other, what),
                                   "nothing in flight there",
                                   "run its backward first, drop its outputs, or call release()"});
  };
  if (const auto it = by_frame_.find(plan.frame); it != by_frame_.end())
    refuse("frame", it->second);
  if (const auto it = by_colour_.find(plan.colour); it != by_colour_.end())
    refuse("colour", it->second);
  by_frame_[plan.frame] = branch;
  by_colour_[plan.colour] = branch;
  return ++generations_[branch];
}

void FlightControl::check_backward(int branch, std::uint64_t generation) const {
  const FlightPlan& plan = branches_[branch];
  const std::string where = fmt::format("backward of branch {} (chunk {}, slot {})", branch,
                                        plan.chunk, plan.physical_slot);
  const auto flying = by_frame_.find(plan.frame);
  if (flying == by_frame_.end() || flying->second != branch || generations_[branch] != generation) {
    throw Error(Error::kContract, {"P07", where, "a flight that is over",
                                   "the newest forward of this branch, not yet run backward",
                                   "run each backward once, before the next forward of its frame"});
  }
  if (!plan.gradient_colour || !last_backward_ || last_backward_->colour != *plan.gradient_colour)
    return;
  if (last_backward_->chunk == plan.chunk && last_backward_->physical_slot == plan.physical_slot)
    return;
  throw Error(Error::kContract,
              {"P08", where,
               fmt::format("gradient colour {}, also that of the backward event before",
                           *plan.gradient_colour),
               "another colour: the event before still owns its gradient",
               "run backwards in the order of the plan"});
}

void FlightControl::backward(int branch, std::uint64_t generation) {
  const FlightPlan& plan = branches_[branch];
  if (plan.gradient_colour) {
    last_backward_ = Event{plan.chunk, plan.physical_slot, *plan.gradient_colour};
  } else if (last_backward_ && (last_backward_->chunk != plan.chunk ||
                                last_backward_->physical_slot != plan.physical_slot)) {
    last_backward_.reset();
  }
  leave(branch, generation);
}

void FlightControl::leave(int branch, std::uint64_t generation) {
  const FlightPlan& plan = branches_[branch];
  const auto flying = by_frame_.find(plan.frame);
  if (flying == by_frame_.end() || flying->second != branch || generations_[branch] != generation)
    return;
  by_frame_.erase(flying);
  by_colour_.erase(plan.colour);
}

void FlightControl::release() {
  for (std::uint64_t& generation : generations_) ++generation;
  by_colour_.clear();
  by_frame_.clear();
  last_backward_.reset();
}

}  // namespace slotgraph

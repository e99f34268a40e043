// Staging under overlapping liveness: one caller-owned tensor is the sample of frames that are live
// together.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include "probes/staging_rig.h"

namespace slotgraph::probes {
namespace {

constexpr int kMostColours = 6;

Tensors alone(const at::Tensor& leaf) { return {leaf}; }

Tensors places_of(CallableSet& set, const StagingRig& rig) {
  Tensors places;
  for (std::size_t branch = 0; branch < rig.plan.slots.size(); ++branch)
    places.push_back(set.at(static_cast<int>(branch)).static_inputs()[0]);
  return places;
}

// Places that share no byte with one before them; of equal ones, the first.
int distinct(const Tensors& places) {
  int count = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    bool apart = true;
    for (std::size_t j = 0; j < i; ++j) apart = apart && !share_memory(places[i], places[j]);
    count += apart;
  }
  return count;
}

bool all_equal(const Tensors& places) {
  bool equal = true;
  for (const at::Tensor& place : places) equal = equal && distance(places[0], place) == 0;
  return equal;
}

void colours(int count, Mode mode, Rows& rows) {
  const std::string question = fmt::format("{} colours, one sample: ", count);
  rows.attempt(question + "captured and run", [&] {
    const at::Tensor sample = leaf(StagingRig::kRows, 5);
    const std::string before = bytes_of(sample);
    const StagingRig rig(frames_in_flight_together(count), {sample});
    const auto set = rig.capture(mode);
    const std::string captured = bytes_of(sample);
    const Tensors places = places_of(*set, rig);
    int callers = 0;
    for (const at::Tensor& place : places) callers += share_memory(place, sample);
    rows.expect(question + "static places, those in the caller's tensor",
                fmt::format("{}, {}", distinct(places), callers), fmt::format("{}, 0", count));
    for (const bool reversed : {false, true}) {
      rows.expect(question + "frames right, backward " + (reversed ? "reversed" : "in order"),
                  fmt::format("{}", right_flights(*set, rig, alone, reversed)),
                  fmt::format("{}", count));
    }
    rows.expect(question + "the caller's tensor is written by",
                captured != before           ? "capture"
                : bytes_of(sample) != before ? "replay"
                                             : "nobody",
                "nobody");
  });
}

void one_colour(Mode mode, Rows& rows) {
  const at::Tensor sample = leaf(StagingRig::kRows, 5);
  rows.attempt("one colour, three frames in turn: captured and run", [&] {
    const StagingRig rig(frames_one_after_another(3), {sample});
    const auto set = rig.capture(mode);
    rows.expect("one colour, three frames in turn: one static place",
                all_equal(places_of(*set, rig)));
    int right = 0;
    for (int frame = 0; frame < 3; ++frame) {
      const auto seed = static_cast<std::uint64_t>(60 + frame);
      Flight flight = begin(leaf(StagingRig::kRows, seed), alone);
      flight.outputs = set->at(frame).forward({flight.inputs, {}});
      backward(flight, rig);
      right += same_bytes(flight.result, eager_result(rig, flight.leaf, alone));
    }
    rows.expect("one colour, three frames in turn: frames right", fmt::format("{}", right), "3");
  });
  rows.attempt("two variants of two frames: captured", [&] {
    const StagingRig rig(frames_in_flight_together(2, 2), {sample});
    const auto set = rig.capture(mode);
    const Tensors places = places_of(*set, rig);
    rows.expect("two variants of two frames: one place for each frame",
                all_equal({places[0], places[2]}) && all_equal({places[1], places[3]}) &&
                    distinct(places) == 2);
  });
}

// A copy into a static place raises the version that all its aliases have in common.
void static_places(Mode mode, Rows& rows) {
  rows.attempt("inputs written to their static places: captured and run", [&] {
    const StagingRig rig(frames_in_flight_together(2), {leaf(StagingRig::kRows, 5)});
    const auto set = rig.capture(mode);
    std::vector<Flight> flights;
    Tensors data;
    std::int64_t copies = 0;
    for (int frame = 0; frame < 2; ++frame) {
      data.push_back(values(StagingRig::kRows, static_cast<std::uint64_t>(60 + frame)));
      at::Tensor place = set->at(frame).static_inputs()[0];
      place.copy_(data[frame]);
      const std::int64_t version = place._version();
      flights.push_back(begin(place.requires_grad_(true), alone));
      flights[frame].outputs = set->at(frame).forward({flights[frame].inputs, {}});
      copies += place._version() - version;
    }
    rows.expect("inputs written to their static places: copies", fmt::format("{}", copies), "0");
    int right = 0;
    for (int frame = 0; frame < 2; ++frame) {
      backward(flights[frame], rig);
      right += same_bytes(flights[frame].result, eager_result(rig, data[frame], alone));
    }
    rows.expect("inputs written to their static places: frames right", fmt::format("{}", right),
                "2");
    set->end_step();
    // The other case, or the question above would hold for a count that sees nothing.
    const at::Tensor place = set->at(0).static_inputs()[0];
    const std::int64_t version = place._version();
    set->at(0).forward({{data[0]}, {}});
    rows.expect("an input from elsewhere: copies", fmt::format("{}", place._version() - version),
                "1");
    set->at(0).release();
  });
}

std::vector<Row> run() {
  std::vector<Row> result;
  for (const Mode mode : slot_modes()) {
    Rows rows(result, to_string(mode));
    for (int count = 2; count <= kMostColours; ++count) colours(count, mode, rows);
    one_colour(mode, rows);
    probe_staged_aliases(mode, rows);
    static_places(mode, rows);
  }
  return result;
}

const bool registered = register_probe(
    {"staging",
     "where inputs lie whose samples are one tensor of the caller: frames that are live "
     "together, frames of one colour, aliases inside a frame",
     run});

}  // namespace

}  // namespace slotgraph::probes

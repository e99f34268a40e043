// Inputs that alias each other inside a frame.
#include <fmt/format.h>

#include "probes/staging_rig.h"

namespace slotgraph::probes {
namespace {

struct Way {
  std::string name;
  std::ptrdiff_t bytes_apart;
  Arguments arguments;
};

// Captures, and compares places and results of two frames that are live together.
void run_aliased(Mode mode, const StagingRig& rig, const Way& way, const std::string& question,
                 Rows& rows) {
  const auto set = rig.capture(mode);
  for (int frame = 0; frame < 2; ++frame) {
    const Tensors places = set->at(frame).static_inputs();
    rows.expect(question + fmt::format("bytes between the places of frame {}", frame),
                fmt::format("{}", distance(places[0], places[1])),
                fmt::format("{}", way.bytes_apart));
  }
  for (const bool reversed : {false, true}) {
    rows.expect(question + "frames right, backward " + (reversed ? "reversed" : "in order"),
                fmt::format("{}", right_flights(*set, rig, way.arguments, reversed)), "2");
  }
}

}  // namespace

void probe_staged_aliases(Mode mode, Rows& rows) {
  const std::ptrdiff_t row = kHidden * static_cast<std::ptrdiff_t>(sizeof(float));
  const std::vector<Way> ways{
      {"(a, a)", 0,
       [](const at::Tensor& a) {
         return Tensors{a, a};
       }},
      {"(a, a from row 1)", row,
       [](const at::Tensor& a) {
         return Tensors{a, a.narrow(0, 1, StagingRig::kRows - 1)};
       }},
      {"(a from row 1, a)", -row,
       [](const at::Tensor& a) {
         return Tensors{a.narrow(0, 1, StagingRig::kRows - 1), a};
       }},
  };
  for (const Way& way : ways) {
    const std::string question = "samples " + way.name + ", a tensor for each colour: ";
    rows.attempt(question + "captured and run", [&] {
      StagingRig rig(frames_in_flight_together(2), way.arguments(leaf(StagingRig::kRows, 5)));
      rig.samples[1] = {way.arguments(leaf(StagingRig::kRows, 6)), {}};
      run_aliased(mode, rig, way, question, rows);
    });
  }
  // One buffer serves one colour. Copying modes put it where the leading input of both colours
  // would have to alias the other input, so that no assignment is right, and must say so (L01).
  // Placement gives every frame places of its own.
  for (const Way& way : ways) {
    const std::string question = "samples " + way.name + ", one tensor for two colours: ";
    const bool placed = mode == Mode::kPlacement;
    rows.attempt(question + "captured and run", [&] {
      const at::Tensor sample = leaf(StagingRig::kRows, 5);
      const std::string before = bytes_of(sample);
      StagingRig rig(frames_in_flight_together(2), way.arguments(sample));
      const std::string found = rule_of([&] { rig.capture(mode); });
      rows.expect(question + "refused by", found, std::string(placed ? "accepted" : "L01"));
      rows.expect(question + "the caller's tensor is unchanged", bytes_of(sample) == before);
      if (placed) run_aliased(mode, rig, way, question, rows);
    });
  }
}

}  // namespace slotgraph::probes

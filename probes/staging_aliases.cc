#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

#include "probes/staging_rig.h"

namespace slotgraph::probes {

StagingRig::StagingRig(Plan the_plan, const Tensors& sample)
    : plan(std::move(the_plan)), module(std::make_shared<torch::nn::Module>("staging")) {
  weight = module->register_parameter("weight", values(kHidden, 1));
  for (int variant = 0; variant < plan.variants(); ++variant) {
    modules.push_back(
        {module, [this](at::TensorList in, const NamedTensors&) { return forward(in); }});
  }
  samples.assign(plan.slots.size(), {sample, {}});
}

// The second input takes part with its square, so that its gradient needs its saved value.
Tensors StagingRig::forward(at::TensorList inputs) const {
  const at::Tensor y = at::matmul(at::tanh(at::matmul(inputs[0], weight)), weight);
  return {inputs.size() == 1 ? y : y + (inputs[1] * inputs[1]).sum(0, /*keepdim=*/true)};
}

std::unique_ptr<CallableSet> StagingRig::capture(Mode mode) const {
  return graph_callables(modules, samples, plan.base_order, plan, {.mode = mode});
}

Flight begin(const at::Tensor& leaf, const Arguments& arguments) {
  return {leaf, arguments(leaf), {}, {}};
}

void backward(Flight& flight, const StagingRig& rig) {
  // Here, not after the forward: until now the frame must have kept it.
  flight.result.push_back(flight.outputs[0].detach().clone());
  const Tensors gradients = torch::autograd::grad({flight.outputs[0]}, {flight.leaf, rig.weight},
                                                  {values(flight.outputs[0].size(0), 77)});
  for (const at::Tensor& gradient : gradients) flight.result.push_back(gradient.clone());
}

Tensors eager_result(const StagingRig& rig, const at::Tensor& values, const Arguments& arguments) {
  Flight flight = begin(values.detach().clone().requires_grad_(true), arguments);
  flight.outputs = rig.forward(flight.inputs);
  backward(flight, rig);
  return flight.result;
}

int right_flights(CallableSet& set, const StagingRig& rig, const Arguments& arguments,
                  bool reversed) {
  const int frames = rig.plan.frames();
  std::vector<Flight> flights;
  for (int frame = 0; frame < frames; ++frame) {
    const auto seed = static_cast<std::uint64_t>(60 + frame);
    flights.push_back(begin(leaf(StagingRig::kRows, seed), arguments));
    flights.back().outputs = set.at(frame).forward({flights.back().inputs, {}});
  }
  for (int i = 0; i < frames; ++i) backward(flights[reversed ? frames - 1 - i : i], rig);
  set.end_step();
  int right = 0;
  for (const Flight& flight : flights)
    right += same_bytes(flight.result, eager_result(rig, flight.leaf, arguments));
  return right;
}

namespace {

struct Way {
  std::string name;
  std::ptrdiff_t bytes_apart;
  Arguments arguments;
};

// Captures, and compares places and results of two frames that are live together.
void run_aliased(const NamedMode& mode, const StagingRig& rig, const Way& way,
                 const std::string& question, Rows& rows) {
  const auto set = rig.capture(mode.mode);
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

void probe_staged_aliases(const NamedMode& mode, Rows& rows) {
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
  // would have to alias the other input, so that no assignment is right, and must say so
  // (runtime.md 4.2, L01). Placement gives every frame places of its own.
  for (const Way& way : ways) {
    const std::string question = "samples " + way.name + ", one tensor for two colours: ";
    const bool placed = mode.mode == Mode::kPlacement;
    rows.attempt(question + "captured and run", [&] {
      const at::Tensor sample = leaf(StagingRig::kRows, 5);
      const std::string before = bytes_of(sample);
      StagingRig rig(frames_in_flight_together(2), way.arguments(sample));
      const std::string found = rule_of([&] { rig.capture(mode.mode); });
      rows.expect(question + "refused by", found, std::string(placed ? "accepted" : "L01"));
      rows.expect(question + "the caller's tensor is unchanged", bytes_of(sample) == before);
      if (placed) run_aliased(mode, rig, way, question, rows);
    });
  }
}

}  // namespace slotgraph::probes

// Three-way alias probe: eager, native graphs and slot graphs.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "probes/alias_rig.h"

namespace slotgraph::probes {
namespace {

constexpr const char* kNames[] = {"y",          "overlapping view of y", "exact alias of y",
                                  "input view", "parameter view",        "buffer view"};
constexpr std::ptrdiff_t kRowBytes = kHidden * static_cast<std::ptrdiff_t>(sizeof(float));

class Experiment {
 public:
  Experiment(Mode mode, Rows& rows)
      : eager_(mode == Mode::kEager), slots_(is_slot_mode(mode)), rows_(rows) {
    set_ = rig_.capture(mode);
  }

  void values_and_gradients() {
    std::vector<std::pair<std::string, std::vector<int>>> ways{{"all outputs", {0, 1, 2, 3, 4}}};
    for (int i = 0; i < kDifferentiable; ++i) ways.push_back({kNames[i], {i}});
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const auto& [name, through] = ways[w];
      const at::Tensor x = leaf(AliasRig::kRows, 30 + w), same = leaf(AliasRig::kRows, 30 + w);
      const Tensors truth = rig_.forward(same);
      const Tensors expected = alias_gradients(truth, {same, rig_.weight}, through, true);
      const Tensors outputs = set_->at(0).forward({{x}, {}});
      if (w == 0) {
        int equal = 0;
        for (int i = 0; i < kAliasOutputs; ++i) equal += same_bytes(outputs[i], truth[i]);
        rows_.expect("outputs with the bytes of eager", fmt::format("{}", equal),
                     fmt::format("{}", kAliasOutputs));
        rows_.expect("the buffer view requires grad", outputs[kBufferView].requires_grad(), false);
      }
      const Tensors found = alias_gradients(outputs, {x, rig_.weight}, through, eager_);
      rows_.expect("gradients through " + name + " have the bytes of eager",
                   same_bytes(found, expected));
    }
  }

  void addresses() {
    const at::Tensor x = leaf(AliasRig::kRows, 40);
    const Tensors out = set_->at(0).forward({{x}, {}});
    const auto apart = [&](const char* question, const at::Tensor& a, const at::Tensor& b,
                           std::ptrdiff_t expected) {
      rows_.expect(question, fmt::format("{}", distance(a, b)), fmt::format("{}", expected));
    };
    apart("bytes from y to its overlapping view", out[kY], out[kOverlap], kRowBytes);
    apart("bytes from y to its exact alias", out[kY], out[kExact], 0);
    apart("bytes from the parameter to its view", rig_.weight, out[kParameterView], kRowBytes);
    apart("bytes from the buffer to its view", rig_.buffer, out[kBufferView], sizeof(float));
    rows_.expect("the input view shares memory with the runtime input",
                 share_memory(out[kInputView], x), eager_);
    int with_sample = 0;
    for (const at::Tensor& output : out) {
      for (const Inputs& sample : rig_.samples)
        with_sample += share_memory(output, sample.positional[0]);
    }
    rows_.expect("outputs that share memory with a capture sample", fmt::format("{}", with_sample),
                 "0");
    if (slots_) owned(out);
    set_->at(0).release();
  }

  // Which outputs a frame of a slot graph owns: all but views of module state.
  void owned(const Tensors& out) {
    int in_arena = 0, in_pool = 0;
    const std::vector<Region> flight = set_->ownership(0).flight, pool = set_->pool_memory();
    for (const int i : {kY, kOverlap, kExact, kInputView}) in_arena += lies_in(out[i], flight);
    for (const int i : {kParameterView, kBufferView}) in_pool += lies_in(out[i], pool);
    rows_.expect("y, its views and the input view in the frame's arena",
                 fmt::format("{}", in_arena), "4");
    rows_.expect("parameter and buffer views in pool memory", fmt::format("{}", in_pool), "0");
  }

  // After the backward an output may be written until its colour is entered again.
  void writes() {
    const at::Tensor x = leaf(AliasRig::kRows, 50);
    const std::string input = bytes_of(x);
    const Tensors out = set_->at(0).forward({{x}, {}});
    alias_gradients(out, {x, rig_.weight}, {kY}, eager_);
    const at::NoGradGuard none;
    const auto write = [&](AliasOutput to, double value) { out[to].detach().fill_(value); };
    const auto holds = [&](const at::Tensor& tensor, double value) {
      return bytes_of(tensor) == bytes_of(at::full_like(tensor, value));
    };
    write(kY, 3);
    rows_.expect("a write through y shows in both views",
                 holds(out[kOverlap], 3) && holds(out[kExact], 3));
    write(kOverlap, 4);
    rows_.expect(
        "a write through the overlapping view shows in y from row 1 on",
        holds(out[kY].narrow(0, 0, 1), 3) && holds(out[kY].narrow(0, 1, AliasRig::kRows - 1), 4));
    write(kExact, 5);
    rows_.expect("a write through the exact alias shows in y and its view",
                 holds(out[kY], 5) && holds(out[kOverlap], 5));
    write(kInputView, 6);
    rows_.expect("a write through the input view changes the runtime input", bytes_of(x) != input,
                 eager_);
    rows_.expect("a write through the input view changes y", !holds(out[kY], 5), false);
    const Tensors before{rig_.weight.detach().clone(), rig_.buffer.clone()};
    write(kParameterView, 7);
    write(kBufferView, 8);
    rows_.expect("writes through parameter and buffer views show in the module",
                 holds(rig_.weight.narrow(0, 1, 2), 7) && holds(rig_.buffer.narrow(1, 1, 3), 8));
    rig_.weight.copy_(before[0]);
    rig_.buffer.copy_(before[1]);
  }

 private:
  bool eager_, slots_;
  Rows& rows_;
  AliasRig rig_;
  std::unique_ptr<CallableSet> set_;
};

std::vector<Row> run() {
  std::vector<Mode> modes{Mode::kEager};
  for (const Mode mode : graph_modes()) modes.push_back(mode);
  std::vector<Row> result;
  for (const Mode mode : modes) {
    Rows rows(result, to_string(mode));
    rows.attempt("the probe's module runs", [&] {
      Experiment experiment(mode, rows);
      experiment.addresses();
      experiment.values_and_gradients();
      experiment.writes();
    });
    if (mode != Mode::kEager) probe_refusals(mode, rows);
  }
  return result;
}

const bool registered = register_probe(
    {"alias",
     "outputs that are views of each other, of the input, of a parameter and of a buffer; and "
     "tensors that are refused",
     run});

}  // namespace

}  // namespace slotgraph::probes

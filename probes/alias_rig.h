// The module of the alias probe: one output for each kind of alias that an output may have.
#ifndef PROBES_ALIAS_RIG_H_
#define PROBES_ALIAS_RIG_H_

#include <functional>
#include <memory>
#include <vector>

#include "probes/probe.h"
#include "probes/rig.h"

namespace slotgraph::probes {

enum AliasOutput { kY, kOverlap, kExact, kInputView, kParameterView, kBufferView };
inline constexpr int kAliasOutputs = 6;
inline constexpr int kDifferentiable = 5;  // all before the view of the buffer

struct AliasRig {
  AliasRig();
  AliasRig(const AliasRig&) = delete;
  AliasRig& operator=(const AliasRig&) = delete;

  Tensors forward(const at::Tensor& x);
  std::unique_ptr<CallableSet> capture(Mode mode) const;

  static constexpr std::int64_t kRows = 5;
  Plan plan = frames_in_flight_together(2);
  std::shared_ptr<torch::nn::Module> module;
  at::Tensor weight, buffer;
  std::vector<Inputs> samples;
  std::function<void(Tensors& outputs)> before_return = [](Tensors&) {};
  std::vector<GraphModule> modules;
};

// Copies of the gradients of `wanted` through some of the outputs. One that nobody gives counts as
// zeros: a reference is given zeros, an execution under test nothing.
Tensors alias_gradients(const Tensors& outputs, const Tensors& wanted,
                        const std::vector<int>& through, bool explicit_zeros);

// Tensors that a slot graph cannot hold: which rule refuses them, and what that leaves behind.
void probe_refusals(Mode mode, Rows& rows);

}  // namespace slotgraph::probes

#endif  // PROBES_ALIAS_RIG_H_

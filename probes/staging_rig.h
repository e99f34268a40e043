// The module of the staging probe, and its runs.
#ifndef PROBES_STAGING_RIG_H_
#define PROBES_STAGING_RIG_H_

#include <memory>
#include <vector>

#include "probes/probe.h"
#include "probes/rig.h"

namespace slotgraph::probes {

struct StagingRig {
  // The same inputs, the same tensor objects, for every branch of the plan.
  StagingRig(Plan plan, const Tensors& sample);
  StagingRig(const StagingRig&) = delete;
  StagingRig& operator=(const StagingRig&) = delete;

  Tensors forward(at::TensorList inputs) const;
  std::unique_ptr<CallableSet> capture(Mode mode) const;

  static constexpr std::int64_t kRows = 4;
  Plan plan;
  std::shared_ptr<torch::nn::Module> module;
  at::Tensor weight;
  std::vector<GraphModule> modules;
  std::vector<Inputs> samples;
};

// Output and gradients (of the leaf and the weight) of one flight, copied when each was due.
struct Flight {
  at::Tensor leaf;
  Tensors inputs;  // the leaf, or views of it
  Tensors outputs;
  Tensors result;
};
// Views of the leaf that alias as the sample's inputs do.
using Arguments = std::function<Tensors(const at::Tensor& leaf)>;

Flight begin(const at::Tensor& leaf, const Arguments& arguments);
void backward(Flight& flight, const StagingRig& rig);
// What the module gives without a runtime.
Tensors eager_result(const StagingRig& rig, const at::Tensor& values, const Arguments& arguments);

// `in order` or `reversed`: all forwards, then all backwards. How many of the flights have the
// bytes of eager.
int right_flights(CallableSet& set, const StagingRig& rig, const Arguments& arguments,
                  bool reversed);

// Inputs that alias each other inside a frame.
void probe_staged_aliases(Mode mode, Rows& rows);

}  // namespace slotgraph::probes

#endif  // PROBES_STAGING_RIG_H_

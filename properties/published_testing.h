// A small rig for the tests of the published runtime: plans by hand, and replays that are compared
// with eager runs.
#ifndef PROPERTIES_PUBLISHED_TESTING_H_
#define PROPERTIES_PUBLISHED_TESTING_H_

#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/testing/rig.h"
#include "core/testing/rule.h"

namespace slotgraph::properties {

using testing::rule;
using testing::same_bytes;

// Every frame has a colour of its own, so that each order in which no frame comes twice is right.
// `order` is that of one variant, for as many microbatches as the ring is long.
Plan distinct_plan(std::vector<int> layers_per_chunk, int variants, Order order);

using Forward = std::function<Tensors(at::TensorList, const NamedTensors&)>;
GraphModule stateless(Forward forward);
// The same for a function of the first input with one output.
GraphModule unary(std::function<at::Tensor(const at::Tensor&)> function);
at::Tensor ramp(at::IntArrayRef sizes, double start = 0.25);

// What a capture call takes.
struct Net {
  // Every branch takes `sample`; `modules` has one module for all, or one for each module index.
  Net(Plan plan, std::vector<GraphModule> modules, const std::function<Inputs(int branch)>& sample);
  std::unique_ptr<CallableSet> capture(Mode mode, Options options = {}) const;
  const GraphModule& module_of(int branch) const { return modules[plan.module_of(branch)]; }
  Plan plan;
  std::vector<GraphModule> modules;
  std::vector<Inputs> samples;
};
// One input of ones that requires grad.
Inputs ones(at::IntArrayRef sizes);

// Replays a captured net; every output and gradient must equal an eager run's in every bit.
class Replay {
 public:
  Replay(const Net& net, Mode mode, Options options = {});
  // Event +(b + 1) is the forward of branch b with new inputs, -(b + 1) its backward.
  void run(const std::vector<int>& events);
  void forward(int branch);
  void forward(int branch, const Inputs& inputs);
  void backward(int branch);
  const Tensors& outputs(int branch) const { return flights_.at(branch).outputs; }
  const void* address(int branch) const { return addresses_.at(branch); }  // of its last output 0
  CallableSet& set() { return *set_; }
  // Gradients of the last backward: of inputs that require grad, then of parameters.
  const Tensors& gradients() const { return gradients_; }

 private:
  struct Flight {
    Tensors wanted, expected_wanted;
    Tensors outputs, expected;
  };
  Net net_;
  std::unique_ptr<CallableSet> set_;
  std::map<int, Flight> flights_;
  std::map<int, const void*> addresses_;
  Tensors gradients_;
  int calls_ = 0;
};

struct Published : testing::DeviceTest {};

}  // namespace slotgraph::properties

#endif  // PROPERTIES_PUBLISHED_TESTING_H_

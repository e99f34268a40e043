// Drives one set of callables through the steps of a case. The same code for every execution.
#ifndef FUZZ_EXECUTE_DRIVER_H_
#define FUZZ_EXECUTE_DRIVER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph_callables.h"
#include "fuzz/execute/model.h"
#include "fuzz/execute/observer.h"
#include "fuzz/execute/replay_watcher.h"

namespace slotgraph::fuzz {

struct DriverOptions {
  std::vector<std::shared_ptr<ReplayWatcher>> watchers = {};
  // Missing incoming gradients are passed as zeros, which is what a replay makes of them.
  bool pass_zeros = false;
};

class Driver {
 public:
  Driver(Model& model, CallableSet& callables, Observer& observer, const DriverOptions& options)
      : model_(model), callables_(callables), observer_(observer), options_(options) {}

  // Starts from the initial parameters, buffers and generator. Ends with everything released.
  void run();

  std::uint64_t replays() const { return replays_; }

 private:
  struct Flight {
    Inputs inputs;
    Tensors outputs;
  };
  // A tensor that is looked at a second time.
  struct Revisit {
    Coordinate place;
    std::string what;
    at::Tensor tensor;
  };
  void observe_again(std::vector<Revisit>& kept, const char* when);
  void step(int step);
  void forward(const Coordinate& event, int variant);
  void backward(const Coordinate& event, int variant);
  // Gradients of the differentiable outputs: `incoming` of the first, of the others a generated one
  // or none.
  std::pair<Tensors, Tensors> gradients_of_outputs(const Coordinate& place, const Flight& flight,
                                                   const at::Tensor& incoming) const;
  // The gradient of the layer's first input.
  at::Tensor backward_layer(const Coordinate& place, int variant, const at::Tensor& incoming);
  // Which of these a backward asks for, in ascending order; never none.
  std::vector<std::size_t> asked_gradients(const Coordinate& place, const Tensors& sources) const;
  void accumulate(int flat_layer, const Tensors& gradients, std::size_t inputs);
  void end_step(int step);
  int branch(const Coordinate& place, int variant) const;
  // Tells all of them, in order.
  template <typename... Parameters, typename... Arguments>
  void tell(void (ReplayWatcher::*event)(Parameters...), const Arguments&... arguments) {
    for (const auto& watcher : options_.watchers) ((*watcher).*event)(arguments...);
  }

  Model& model_;
  CallableSet& callables_;
  Observer& observer_;
  DriverOptions options_;
  std::map<std::tuple<int, int, int>, Flight> flights_;  // by microbatch, chunk, layer
  std::map<std::pair<int, int>, at::Tensor> sums_;
  std::vector<Revisit>
      until_next_backward_;                 // leading input's gradient of the newest backward event
  std::vector<Revisit> until_end_of_step_;  // all other gradients: they own their memory
  std::uint64_t replays_ = 0;
};

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_DRIVER_H_

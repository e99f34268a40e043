// Drives one set of callables through the steps of a case. The same code for every execution.
#ifndef FUZZ_EXECUTE_DRIVER_H_
#define FUZZ_EXECUTE_DRIVER_H_

#include <map>
#include <string>

#include "core/graph/callables.h"
#include "fuzz/execute/model.h"
#include "fuzz/execute/observer.h"
#include "fuzz/execute/shadow.h"

namespace slotgraph::fuzz {

// Addresses that equal slots must share.
class AddressBook {
 public:
  // Notes the address of a frame's tensor; returns what it was at first if that differs, else null.
  const void* note(int frame, const std::string& what, const void* address);

 private:
  std::map<std::pair<int, std::string>, const void*> first_;
};

// What an execution is driven with; each part may be missing.
struct Watchers {
  // Notes output 0 and the leading input's gradient of each frame.
  AddressBook* addresses = nullptr;
  Shadow* shadow = nullptr;
  // Missing incoming gradients are passed as zeros, which is what a replay makes of them.
  bool pass_zeros = false;
};

class Driver {
 public:
  Driver(Model& model, CallableSet& callables, Observer& observer, const Watchers& watchers)
      : model_(model), callables_(callables), observer_(observer), watchers_(watchers) {}

  // Starts from the initial parameters, buffers and generator. Ends with everything released.
  void run();

  std::uint64_t replays() const { return replays_; }
  const std::vector<std::string>& address_faults() const { return address_faults_; }

 private:
  struct Flight {
    Inputs inputs;
    Tensors outputs;
  };
  // A tensor that is looked at a second time.
  struct Kept {
    Place place;
    std::string what;
    at::Tensor tensor;
  };
  void observe_again(std::vector<Kept>& kept, const char* when);
  void step(int step);
  void forward(const Place& event, int variant);
  void backward(const Place& event, int variant);
  // Gradients of the differentiable outputs: `incoming` of the first, of the others a generated one
  // or none.
  std::pair<Tensors, Tensors> gradients_of_outputs(const Place& place, const Flight& flight,
                                                   const at::Tensor& incoming) const;
  // The gradient of the layer's first input.
  at::Tensor backward_layer(const Place& place, int variant, const at::Tensor& incoming);
  // Which of these a backward asks for, in ascending order; never none.
  std::vector<std::size_t> asked_gradients(const Place& place, const Tensors& sources) const;
  void accumulate(int flat_layer, const Tensors& gradients, std::size_t inputs);
  void end_step(int step);
  void note_address(const Place& place, const std::string& what, const at::Tensor& tensor);
  int branch(const Place& place, int variant) const;

  Model& model_;
  CallableSet& callables_;
  Observer& observer_;
  Watchers watchers_;
  std::map<std::tuple<int, int, int>, Flight> flights_;  // by microbatch, chunk, layer
  std::map<std::pair<int, int>, at::Tensor> sums_;
  std::vector<Kept> until_next_backward_;  // leading input's gradient of the newest backward event
  std::vector<Kept> until_end_of_step_;    // all other gradients: they own their memory
  std::uint64_t replays_ = 0;
  std::vector<std::string> address_faults_;
};

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_DRIVER_H_

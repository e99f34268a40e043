// The model of a case on the device: modules, the tensors that drive them, and their initial state.
#ifndef FUZZ_EXECUTE_MODEL_H_
#define FUZZ_EXECUTE_MODEL_H_

#include <map>
#include <vector>

#include "core/graph/graph_module.h"
#include "core/models/blocks.h"
#include "fuzz/case/case.h"

namespace slotgraph::fuzz {

// What a tensor of the driver belongs to.
struct Coordinate {
  int step = 0;
  int microbatch = 0;
  int chunk = 0;
  int layer = 0;  // inside the chunk
};

class Model {
 public:
  // `remember`: generated values are made once and copied then, where many schedules use them.
  // `value` may get another schedule, and must outlive the model.
  explicit Model(const Case& value, bool remember = false);

  const Case& spec() const { return case_; }
  int flat_layer(int chunk, int layer) const;
  const GraphModule& module(int flat_layer) const { return modules_[flat_layer]; }
  // One entry for each variant and layer; variants share modules.
  std::vector<GraphModule> modules_of_variants() const;
  // One entry for each branch. Runs the layers once to learn strides.
  std::vector<Inputs> samples();

  // Whether the first input, or any input or parameter, of a layer has a gradient.
  bool input_gradient(int chunk, int layer) const;
  bool differentiable(int chunk, int layer) const;

  // Inputs of a layer for one microbatch: `first` and generated extra inputs, as leaves with their
  // gradient wishes.
  Inputs inputs(const Coordinate& place, int variant, const at::Tensor& first);
  // Generated values for the first input of a chunk, and for the gradient of an output (in the
  // output's layout).
  at::Tensor first_input(const Coordinate& place, int variant) const;
  at::Tensor output_gradient(const Coordinate& place, const at::Tensor& output, int index) const;

  // Whether a layer keeps tensors for its backward that no saved-tensor hook sees.
  bool hides_saves() const;
  // Whether another input of a layer is a view of its leading one, which modes that copy refuse:
  // the leading input of a chain lies where the layer before left it.
  bool aliases_leading_input() const;

  std::size_t remembered_bytes() const;

  // Writes the initial parameters, buffers and generator state back.
  void reset();
  // Adds -1/8 of the gradient sums to the parameters, in place. Sums are by layer and parameter.
  void update(const std::map<std::pair<int, int>, at::Tensor>& sums);

 private:
  at::Tensor values(at::IntArrayRef sizes, at::ScalarType dtype, std::uint64_t key,
                    double scale) const;

  const Case& case_;
  bool remember_;
  mutable std::map<std::uint64_t, at::Tensor> remembered_;  // by key, which no two sizes share
  std::vector<GraphModule> modules_;
  std::vector<const BlockKind*> kinds_;
  std::vector<Tensors> initial_;  // parameters, then buffers, of each layer
  // Inputs that all frames of a microbatch share, by (step, microbatch, variant, input name).
  std::map<std::tuple<int, int, int, std::string>, at::Tensor> shared_;
};

// The tensor's values in this layout; the tensor itself if it has it already.
at::Tensor to_layout(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_MODEL_H_

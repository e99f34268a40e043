// What one run of a branch shows: the tensors that it takes, saves and returns.
#ifndef CORE_GRAPH_RUN_RUN_TENSORS_H_
#define CORE_GRAPH_RUN_RUN_TENSORS_H_

#include <map>
#include <string>
#include <vector>

#include "core/graph/graph_module.h"
#include "core/layout/arena_layout.h"

namespace slotgraph {

// A plain value. Storages have numbers by first appearance: module state, inputs, saved tensors in
// the order of their saving, outputs. Versions count the writes since the storage was first seen.
struct RunTensors {
  int state_storages = 0;  // numbers below it are those of parameters and buffers
  std::vector<TensorSpec> inputs;
  std::vector<int> input_versions;
  std::vector<SavedTensor> saved;  // empty unless the run was watched by saved-tensor hooks
  std::vector<SurfaceTensor> outputs;
  std::vector<int> output_versions;
  std::vector<SurfaceTensor> user_gradients;  // of each input
  std::vector<bool> parameter_gradients;      // which trainable parameters get one
};

// Throws Error: W03 naming the first part in which two runs differ, W05 other parameters have
// gradients. `where` names the module.
void check_same(const RunTensors& first, const RunTensors& later, const std::string& where);

// Takes one run apart. Holds every storage that it numbers, so that no address comes twice.
class RunObserver {
 public:
  // `state`: state_of(module).
  RunObserver(const GraphModule& module, const Tensors& state, const Tensors& inputs,
              std::string where);

  // Throws Error W01, W02.
  void see_saved(const at::Tensor& tensor);
  // Throws Error W06.
  void see_outputs(const Tensors& outputs);
  // `gradients`: of each input, then of each trainable parameter. Throws Error: W04 an input that
  // requires grad has none, unless `unused_inputs`; K05, K06 a gradient of an input, of a parameter
  // that is not plain.
  void see_gradients(const Tensors& gradients, bool unused_inputs);

  const RunTensors& tensors() const { return tensors_; }

 private:
  int number(const at::Tensor& tensor);
  int writes(const at::Tensor& tensor);  // since its storage was numbered
  TensorSpec spec(const at::Tensor& tensor);
  bool is_state(const at::Tensor& tensor) const;
  SurfaceTensor surface(const at::Tensor& tensor);

  const GraphModule& module_;
  Tensors inputs_;
  std::string where_;
  RunTensors tensors_;
  std::map<const void*, int> numbers_;  // by StorageImpl; only looked up
  std::vector<c10::Storage> storages_;
  std::vector<std::uint32_t> first_versions_;
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_RUN_RUN_TENSORS_H_

// What warm-up and capture must leave as it was: buffers, parameters, inputs, the generator.
#ifndef CORE_GRAPH_STATE_MODULE_STATE_H_
#define CORE_GRAPH_STATE_MODULE_STATE_H_

#include <ATen/core/Generator.h>

#include <vector>

#include "core/graph/graph_module.h"

namespace slotgraph {

// Takes a snapshot of the buffers' contents and the generator's state; the destructor writes both
// back on the current stream, whatever happened in between.
class ModuleStateGuard {
 public:
  ModuleStateGuard(const std::vector<GraphModule>& modules, const std::vector<Inputs>& samples);
  ~ModuleStateGuard();
  ModuleStateGuard(const ModuleStateGuard&) = delete;
  ModuleStateGuard& operator=(const ModuleStateGuard&) = delete;

  // Throws Error: W01 an input or parameter was written in place, W02 a parameter or buffer is
  // another tensor now.
  void check() const;

 private:
  struct Saved {
    GraphModule module;
    Tensors buffers;
    std::vector<const void*> buffer_addresses;
    Tensors contents;
    Tensors parameters;
    std::vector<const void*> parameter_addresses;
    std::vector<std::uint32_t> parameter_versions;
  };
  std::vector<Saved> modules_;
  Tensors inputs_;
  std::vector<std::uint32_t> input_versions_;
  at::Generator generator_;
  at::Tensor generator_state_;
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_STATE_MODULE_STATE_H_

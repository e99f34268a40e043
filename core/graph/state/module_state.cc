#include "core/graph/state/module_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "core/device/device.h"
#include "core/error.h"

namespace slotgraph {
namespace {

std::vector<const void*> addresses_of(const Tensors& tensors) {
  std::vector<const void*> result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.const_data_ptr());
  return result;
}

// The same tensor objects over the same memory: set_data keeps the object.
bool same_tensors(const Tensors& now, const Tensors& saved,
                  const std::vector<const void*>& addresses) {
  const auto same = [](const at::Tensor& x, const at::Tensor& y) { return x.is_same(y); };
  return now.size() == saved.size() && std::equal(now.begin(), now.end(), saved.begin(), same) &&
         addresses_of(now) == addresses;
}

}  // namespace

ModuleStateGuard::ModuleStateGuard(const std::vector<GraphModule>& modules,
                                   const std::vector<Inputs>& samples)
    : generator_(device::generator()), generator_state_(generator_.get_state()) {
  const at::NoGradGuard no_grad;
  std::set<const torch::nn::Module*> seen;
  for (const GraphModule& module : modules) {
    if (!seen.insert(module.module.get()).second) continue;
    Saved saved{module, buffers_of(module), {}, {}, parameters_of(module), {}, {}};
    saved.buffer_addresses = addresses_of(saved.buffers);
    saved.parameter_addresses = addresses_of(saved.parameters);
    for (const at::Tensor& buffer : saved.buffers) saved.contents.push_back(buffer.clone());
    for (const at::Tensor& parameter : saved.parameters)
      saved.parameter_versions.push_back(parameter._version());
    modules_.push_back(std::move(saved));
  }
  for (const Inputs& sample : samples) {
    for (const at::Tensor& input : sample.all()) {
      inputs_.push_back(input);
      input_versions_.push_back(input._version());
    }
  }
}

ModuleStateGuard::~ModuleStateGuard() {
  const at::NoGradGuard no_grad;
  try {
    for (Saved& saved : modules_) {
      for (std::size_t i = 0; i < saved.buffers.size(); ++i) {
        saved.buffers[i].copy_(saved.contents[i]);
      }
    }
    generator_.set_state(generator_state_);
  } catch (const std::exception& error) {
    // Going on with other buffers or random numbers would change results without notice.
    fmt::print(stderr, "slotgraph: buffers and generator cannot be restored after a capture: {}\n",
               error.what());
    std::abort();
  }
}

void ModuleStateGuard::check() const {
  for (const Saved& saved : modules_) {
    const std::string where = "module " + name_of(saved.module);
    if (!same_tensors(buffers_of(saved.module), saved.buffers, saved.buffer_addresses) ||
        !same_tensors(parameters_of(saved.module), saved.parameters, saved.parameter_addresses)) {
      throw Error({"W02", where, "another tensor in place of a parameter or buffer",
                   "the tensors it had before", "update buffers in place (copy_, mul_, add_)"});
    }
    for (std::size_t i = 0; i < saved.parameters.size(); ++i) {
      if (saved.parameters[i]._version() == saved.parameter_versions[i]) continue;
      throw Error({"W01", fmt::format("{}, parameter {}", where, i), "a write in place",
                   "parameters that forward only reads", "make it a buffer"});
    }
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i]._version() == input_versions_[i]) continue;
    throw Error({"W01", fmt::format("sample input {}", i), "a write in place",
                 "inputs that forward only reads", "clone the input first"});
  }
}

}  // namespace slotgraph

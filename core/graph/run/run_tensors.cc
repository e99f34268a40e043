#include "core/graph/run/run_tensors.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/graph/plain_tensor.h"
#include "core/graph/run/backward.h"

namespace slotgraph {

void check_same(const RunTensors& first, const RunTensors& later, const std::string& where) {
  const auto differs = [&](const char* what) {
    throw Error(Error::kContract,
                {"W03", where, fmt::format("other {} than in the first run", what),
                 "the same in every run of the module",
                 "a graph holds one run: nothing may depend on data or on earlier calls"});
  };
  if (first.saved != later.saved) differs("saved tensors");
  if (first.input_versions != later.input_versions ||
      first.output_versions != later.output_versions)
    differs("writes to inputs or outputs");
  if (first.outputs != later.outputs) differs("outputs");
  if (first.user_gradients != later.user_gradients) differs("gradients of inputs");
  if (first.parameter_gradients != later.parameter_gradients) {
    throw Error(
        Error::kContract,
        {"W05", where, "gradients of other parameters than in the first run",
         "the same parameters in every run", "use every parameter in every run, or freeze it"});
  }
}

RunObserver::RunObserver(const GraphModule& module, const Tensors& state, const Tensors& inputs,
                         std::string where)
    : module_(module), inputs_(inputs), where_(std::move(where)) {
  for (const at::Tensor& tensor : state) number(tensor);
  tensors_.state_storages = static_cast<int>(storages_.size());
  for (const at::Tensor& input : inputs) tensors_.inputs.push_back(spec(input));
}

int RunObserver::number(const at::Tensor& tensor) {
  const auto [it, first] =
      numbers_.emplace(tensor.storage().unsafeGetStorageImpl(), static_cast<int>(storages_.size()));
  if (first) {
    storages_.push_back(tensor.storage());
    first_versions_.push_back(tensor.is_inference() ? 0 : tensor._version());
  }
  return it->second;
}

int RunObserver::writes(const at::Tensor& tensor) {
  const std::uint32_t first = first_versions_[number(tensor)];
  return tensor.is_inference() ? 0 : static_cast<int>(tensor._version() - first);
}

TensorSpec RunObserver::spec(const at::Tensor& tensor) {
  return {number(tensor),
          tensor.storage_offset() * static_cast<std::int64_t>(tensor.itemsize()),
          tensor.sizes().vec(),
          tensor.strides().vec(),
          static_cast<int>(tensor.itemsize()),
          static_cast<int>(tensor.scalar_type()),
          tensor.is_cuda() ? tensor.get_device() : -1,
          tensor.requires_grad()};
}

bool RunObserver::is_state(const at::Tensor& tensor) const {
  const auto it = numbers_.find(tensor.storage().unsafeGetStorageImpl());
  return it != numbers_.end() && it->second < tensors_.state_storages;
}

void RunObserver::see_saved(const at::Tensor& tensor) {
  const std::string where = fmt::format("{}, saved tensor {}", where_, tensors_.saved.size());
  if (tensor.layout() != at::kStrided) {
    throw Error(Error::kContract, {"W01", where, not_plain(tensor).value_or("another layout"),
                                   "a strided tensor", "keep this module eager"});
  }
  const bool internal = tensor.is_cuda() && !is_state(tensor);
  if (const auto reason = not_plain(tensor); internal && reason) {
    throw Error(Error::kContract,
                {"W02", where, *reason, "a plain tensor", "keep this module eager"});
  }
  const TensorSpec saved = spec(tensor);
  tensors_.saved.push_back({internal, saved, writes(tensor)});
}

SurfaceTensor RunObserver::surface(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return {SurfaceTensor::Kind::kNone, {}};
  const bool state = tensor.numel() > 0 && is_state(tensor);
  return {state ? SurfaceTensor::Kind::kModuleState : SurfaceTensor::Kind::kArena, spec(tensor)};
}

void RunObserver::see_outputs(const Tensors& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor& output = outputs[i];
    const std::string where = fmt::format("{}, output {}", where_, i);
    if (output.defined() && !output.is_cuda() && output.requires_grad()) {
      throw Error(Error::kContract,
                  {"W06", where, "a differentiable output on " + output.device().str(),
                   "one on the device, or one without gradient", "move it to the device"});
    }
    if (output.defined() && output.is_cuda()) {
      if (const auto reason = no_static_place(output))
        throw Error(Error::kContract,
                    {"W06", where, *reason, "a plain strided tensor", "return a dense copy"});
      for (const at::Tensor& parameter : parameters_of(module_)) {
        if (!output.is_same(parameter)) continue;
        throw Error(Error::kContract, {"W06", where, "a parameter itself", "a view of it",
                                       "return parameter.view_as(...)"});
      }
    }
    tensors_.outputs.push_back(surface(output));
    const bool placed = tensors_.outputs.back().kind == SurfaceTensor::Kind::kArena;
    tensors_.output_versions.push_back(placed ? writes(output) : 0);
  }
  for (const at::Tensor& input : inputs_) tensors_.input_versions.push_back(writes(input));
}

void RunObserver::see_gradients(const Tensors& gradients, bool unused_inputs) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const at::Tensor& gradient = gradients[i];
    if (i >= inputs_.size()) {
      tensors_.parameter_gradients.push_back(gradient.defined());
      if (!gradient.defined()) continue;
      if (const auto reason = not_plain(gradient)) {
        throw Error(Error::kContract,
                    {"K06", fmt::format("{}, gradient of parameter {}", where_, i - inputs_.size()),
                     *reason, "a plain strided tensor", "keep this module eager"});
      }
      continue;
    }
    if (!gradient.defined()) {
      if (inputs_[i].requires_grad() && !unused_inputs) {
        throw Error(Error::kContract, {"W04", fmt::format("{}, input {}", where_, i), "no gradient",
                                       "one, since the input requires grad",
                                       "do not require it, or set Options::unused_inputs"});
      }
      tensors_.user_gradients.push_back({SurfaceTensor::Kind::kNone, {}});
      continue;
    }
    if (const auto reason = not_plain(gradient)) {
      throw Error(Error::kContract, {"K05", fmt::format("{}, gradient of input {}", where_, i),
                                     *reason, "a plain strided tensor", "keep this module eager"});
    }
    // Each has a dense place of its own, whatever it aliases.
    const TensorShape shape = gradient_shape(gradient);
    tensors_.user_gradients.push_back(
        {SurfaceTensor::Kind::kArena,
         {static_cast<int>(i), 0, shape.sizes, shape.strides, static_cast<int>(gradient.itemsize()),
          static_cast<int>(shape.dtype), gradient.get_device(), false}});
  }
}

}  // namespace slotgraph

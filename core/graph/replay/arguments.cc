#include "core/graph/replay/arguments.h"

#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/graph/plain_tensor.h"

namespace slotgraph {

Tensors arguments_of(const Inputs& inputs, std::size_t positional,
                     const std::vector<std::string>& names, int branch) {
  const std::string where = fmt::format("forward of branch {}", branch);
  Tensors result = inputs.positional;
  for (const std::string& name : names) {
    const auto it = std::find_if(inputs.named.begin(), inputs.named.end(),
                                 [&](const auto& each) { return each.first == name; });
    if (it == inputs.named.end()) {
      throw Error(Error::kContract,
                  {"P01", where, fmt::format("no input `{}`", name),
                   fmt::format("the named inputs of the sample: {}", fmt::join(names, ", ")),
                   "pass all of them"});
    }
    result.push_back(it->second);
  }
  if (inputs.positional.size() != positional || inputs.named.size() != names.size()) {
    throw Error(Error::kContract, {"P05", where,
                                   fmt::format("{} positional and {} named inputs",
                                               inputs.positional.size(), inputs.named.size()),
                                   fmt::format("{} and {}", positional, names.size()),
                                   "pass the inputs of the sample"});
  }
  return result;
}

void check_inputs(const Tensors& inputs, const Tensors& places, int branch) {
  const at::Device here(at::kCUDA, c10::cuda::current_device());
  if (!places.empty() && places[0].device() != here) {
    throw Error(Error::kContract,
                {"P05", fmt::format("forward of branch {}", branch),
                 fmt::format("{} as the current device", here.str()), places[0].device().str(),
                 "run a frame on the device of its capture"});
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& place = places[i];
    if (!not_plain(inputs[i]) && inputs[i].sizes() == place.sizes() &&
        inputs[i].scalar_type() == place.scalar_type() && inputs[i].device() == place.device())
      continue;
    throw Error(Error::kContract, {"P05", fmt::format("forward of branch {}, input {}", branch, i),
                                   not_plain(inputs[i]).value_or(describe(inputs[i])),
                                   describe(place), "pass tensors like the sample"});
  }
}

void check_incoming(const Tensors& gradients, const Tensors& places, int branch) {
  const std::string where = fmt::format("backward of branch {}", branch);
  if (gradients.size() != places.size()) {
    throw Error(Error::kContract,
                {"P03", where, fmt::format("{} incoming gradients", gradients.size()),
                 fmt::to_string(places.size()), "pass one for each differentiable output"});
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const bool fits = !gradients[i].defined() ||
                      (!not_plain(gradients[i]) && gradients[i].sizes() == places[i].sizes() &&
                       gradients[i].device() == places[i].device());
    if (fits) continue;
    throw Error(Error::kContract,
                {"P03", fmt::format("{}, incoming gradient {}", where, i), describe(gradients[i]),
                 describe(places[i]), "pass gradients like the outputs"});
  }
}

}  // namespace slotgraph

#include "core/graph/callables.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include "core/error.h"
#include "core/graph/modes/request.h"
#include "core/graph/state/module_state.h"

namespace slotgraph {
namespace {

void require(bool holds, const char* rule, std::string where, std::string found,
             std::string expected, std::string advice) {
  if (!holds)
    throw Error({rule, std::move(where), std::move(found), std::move(expected), std::move(advice)});
}

bool same_shape(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.scalar_type() == b.scalar_type() && a.requires_grad() == b.requires_grad();
}

void check_sample(const GraphModule& module, const Inputs& sample, const Inputs& first,
                  std::size_t branch) {
  const std::string where = fmt::format("sample of branch {}", branch);
  const Tensors inputs = sample.all();
  const Tensors expected = first.all();
  require(inputs.size() == expected.size(), "C02", where, fmt::format("{} inputs", inputs.size()),
          fmt::format("{}, as in the first branch of its module", expected.size()),
          "pass equal samples");
  Tensors state = parameters_of(module);
  const Tensors buffers = buffers_of(module);
  state.insert(state.end(), buffers.begin(), buffers.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string input = fmt::format("{}, input {}", where, i);
    const bool dense =
        inputs[i].defined() && inputs[i].is_cuda() && inputs[i].layout() == at::kStrided;
    require(dense, "C03", input, "no strided CUDA tensor", "one", "move the input to the device");
    require(same_shape(inputs[i], expected[i]), "C02", input,
            "other sizes, strides, dtype or gradient wish",
            "those of the first branch of its module", "pass equal samples");
    for (const at::Tensor& tensor : state) {
      require(!tensor.is_alias_of(inputs[i]), "C21", input, "an alias of a parameter or buffer",
              "memory of its own", "clone the input");
    }
  }
}

void check_request(const CaptureRequest& request) {
  check(request.plan);
  const Plan& plan = request.plan;
  const std::size_t modules =
      static_cast<std::size_t>(plan.variants()) * static_cast<std::size_t>(plan.layers());
  require(request.modules.size() == modules, "C01", "modules",
          fmt::to_string(request.modules.size()), fmt::format("{} = variants * layers", modules),
          "pass one module for each variant and layer");
  require(request.samples.size() == plan.slots.size(), "C01", "samples",
          fmt::to_string(request.samples.size()),
          fmt::format("{}, one for each slot", plan.slots.size()),
          "pass one sample for each branch");
  require(request.options.warm_up_iterations >= 2, "C01", "warm_up_iterations",
          fmt::to_string(request.options.warm_up_iterations), "at least 2", "raise it");
  std::vector<int> first(modules, -1);
  for (std::size_t i = 0; i < request.samples.size(); ++i) {
    int& branch = first[plan.slots[i].warmup_alias_group];
    if (branch < 0) branch = static_cast<int>(i);
    check_sample(request.module_of(static_cast<int>(i)), request.samples[i],
                 request.samples[branch], i);
  }
  if (request.options.mode == Mode::kEager) return;
  require(c10::cuda::getCurrentCUDAStream() != c10::cuda::getDefaultCUDAStream(), "C04",
          "current stream", "the default stream", "a stream that can be captured",
          "set another current stream for the call");
  require(!at::autocast::is_autocast_enabled(at::kCUDA), "C04", "autocast", "on", "off",
          "switch it off for the call");
}

}  // namespace

std::unique_ptr<CallableSet> graph_callables(const std::vector<GraphModule>& modules,
                                             const std::vector<Inputs>& samples, const Order& order,
                                             const Plan& plan, const Options& options) {
  const CaptureRequest request{modules, samples, order, plan, options};
  check_request(request);
  if (options.mode == Mode::kEager) return make_eager(request);
  const at::AutoGradMode grad(true);
  const ModuleStateGuard state(modules, samples);
  std::unique_ptr<CallableSet> result =
      options.mode == Mode::kPlacement ? make_placement(request) : make_native(request);
  state.check();
  return result;
}

}  // namespace slotgraph

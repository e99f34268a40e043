// The example of docs/library.md, as a test.
#include <ATen/Functions.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>

#include "core/device/device.h"
#include "core/graph/graph_callables.h"
#include "core/order/pipeline_order.h"
#include "core/plan/planner.h"

namespace {

TEST(Library, Example) {
  // example: begin
  using namespace slotgraph;
  device::initialise();  // once a process, before any CUDA tensor

  // What a rank runs: stage 0 of 2, one chunk of one layer, CP sizes 2 and 1, up to 8 microbatches.
  PlanRequest request;
  request.shape.pipeline_size = 2;
  request.layers_per_chunk = {1};
  request.cp_sizes = {2, 1};
  request.counts = {1, 2, 3, 4, 5, 6, 7, 8};
  const Plan plan = make_plan(request);

  // One module for each variant and layer; here both variants run the same layer.
  torch::nn::Linear linear(16, 16);
  linear->to(at::kCUDA);
  const GraphModule layer{linear.ptr(), [linear](at::TensorList in, const NamedTensors&) mutable {
                            return Tensors{linear->forward(in[0])};
                          }};
  const std::vector<GraphModule> modules{layer, layer};

  // One sample for each branch: a variant of CP size c has 32 / c tokens.
  std::vector<Inputs> samples;
  for (std::size_t branch = 0; branch < plan.slots.size(); ++branch) {
    const int variant = plan.variant_of(branch);
    const at::Tensor x = at::ones({32 / plan.cp_sizes[variant], 16}, at::kCUDA);
    samples.push_back({{x.requires_grad_(true)}, {}});
  }
  const auto set = graph_callables(modules, samples, plan.base_order, plan, {});

  // Microbatch 0 runs with CP size 1, which is variant 1, in physical slot 0.
  Callable& callable = set->at(plan.branch(/*variant=*/1, /*chunk=*/0, /*physical_slot=*/0,
                                           /*layer=*/0));
  const at::Tensor x = at::full({32, 16}, 0.5, at::kCUDA).requires_grad_(true);
  const at::Tensor y = callable.forward({{x}, {}})[0];  // replays the forward graph
  const std::vector<at::Tensor> gradients = torch::autograd::grad(
      {y}, {x, linear->weight}, {at::ones_like(y)});  // replays the backward graph
  set->end_step();
  // example: end

  const at::Tensor eager = linear->forward(x);
  EXPECT_TRUE(y.equal(eager));
  const auto truth = torch::autograd::grad({eager}, {x, linear->weight}, {at::ones_like(eager)});
  EXPECT_TRUE(gradients[0].equal(truth[0]));
  EXPECT_TRUE(gradients[1].equal(truth[1]));
}

}  // namespace

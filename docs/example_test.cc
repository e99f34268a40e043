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

  // What a rank runs: stage 0 of 2, a chunk of two layers, CP sizes 2 and 1, 1 to 8 microbatches.
  PlanRequest request;
  request.shape.pipeline_size = 2;
  request.layers_per_chunk = {2};
  request.cp_sizes = {2, 1};
  request.counts = {1, 2, 3, 4, 5, 6, 7, 8};
  const Plan plan = make_plan(request);

  // One module for each variant and layer; here both variants run the same layers.
  std::vector<torch::nn::Linear> linears{torch::nn::Linear(16, 16), torch::nn::Linear(16, 16)};
  std::vector<GraphModule> modules;
  for (int module = 0; module < plan.modules(); ++module) {
    torch::nn::Linear linear = linears[plan.layer_of_module(module)];
    linear->to(at::kCUDA);
    modules.push_back({linear.ptr(), [linear](at::TensorList in, const NamedTensors&) mutable {
                         return Tensors{linear->forward(in[0])};
                       }});
  }

  // One sample for each branch: a variant of CP size c has 32 / c tokens.
  std::vector<Inputs> samples;
  for (int branch = 0; branch < plan.variants() * plan.frames(); ++branch) {
    const int cp_size = plan.cp_sizes[plan.variant_of(branch)];
    const at::Tensor x = at::ones({32 / cp_size, 16}, at::kCUDA);
    samples.push_back({{x.requires_grad_(true)}, {}});
  }
  const auto set = graph_callables(modules, samples, plan.base_order, plan, {});

  // Microbatch 0 runs with CP size 1, which is variant 1.
  const at::Tensor x = at::full({32, 16}, 0.5, at::kCUDA).requires_grad_(true);
  at::Tensor y = x;
  for (int layer = 0; layer < 2; ++layer) {
    const int branch =
        plan.branch(/*variant=*/1, /*chunk=*/0, plan.slot_of(/*microbatch=*/0), layer);
    y = set->at(branch).forward({{y}, {}})[0];  // replays the forward graph
  }
  const std::vector<at::Tensor> gradients =
      torch::autograd::grad({y}, {x, linears[0]->weight, linears[1]->weight},
                            {at::ones_like(y)});  // replays the backward graphs
  set->end_step();
  // example: end

  const at::Tensor eager = linears[1]->forward(linears[0]->forward(x));
  EXPECT_TRUE(y.equal(eager));
  const auto truth = torch::autograd::grad({eager}, {x, linears[0]->weight, linears[1]->weight},
                                           {at::ones_like(eager)});
  for (std::size_t i = 0; i < truth.size(); ++i) EXPECT_TRUE(gradients[i].equal(truth[i])) << i;
}

}  // namespace

#include "properties/published_testing.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <numeric>

namespace slotgraph::properties {

Plan distinct_plan(std::vector<int> layers_per_chunk, int variants, Order order) {
  Plan plan;
  plan.name = "published";
  const int chunks = static_cast<int>(layers_per_chunk.size());
  // The steps that a plan must cover are short enough for any ring that the rows need.
  plan.shape = chunks == 1 ? PipelineShape{1, 0, 0, 0} : PipelineShape{2, 1, chunks, 2};
  plan.layers_per_chunk = std::move(layers_per_chunk);
  for (int v = 0; v < variants; ++v) plan.cp_sizes.push_back(1 << (variants - 1 - v));
  plan.ring_length = static_cast<int>(order.size()) / chunks / 2;
  plan.covered_counts = {chunks == 1 ? 1 : 2};
  plan.base_order = std::move(order);
  int gradients = 0;
  for (int c = 0; c < chunks; ++c) {
    plan.gradient_colours.emplace_back();
    for (int s = 0; s < plan.ring_length; ++s)
      plan.gradient_colours.back().push_back(plan.layers_per_chunk[c] > 0 ? gradients++ : 0);
  }
  for (int v = 0; v < variants; ++v) {
    int module = v * plan.layers(), frame = 0;
    for (int c = 0; c < chunks; module += plan.layers_per_chunk[c++]) {
      for (int s = 0; s < plan.ring_length; ++s) {
        for (int l = 0; l < plan.layers_per_chunk[c]; ++l)
          plan.slots.push_back({frame++, s, v * plan.ring_length + s, c, l, module + l,
                                plan.gradient_colours[c][s]});
      }
    }
  }
  return plan;
}

GraphModule stateless(Forward forward) {
  return {std::make_shared<torch::nn::Module>("stateless"), std::move(forward)};
}

GraphModule unary(std::function<at::Tensor(const at::Tensor&)> function) {
  return stateless([function = std::move(function)](at::TensorList in, const NamedTensors&) {
    return Tensors{function(in[0])};
  });
}

at::Tensor ramp(at::IntArrayRef sizes, double start) {
  const std::int64_t numel =
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
  return (at::arange(numel, at::kFloat) * 0.001 + start).view(sizes).to(at::kCUDA);
}

Inputs ones(at::IntArrayRef sizes) {
  return {{at::ones(sizes, at::device(at::kCUDA)).requires_grad_(true)}, {}};
}

Net::Net(Plan plan_, std::vector<GraphModule> modules_,
         const std::function<Inputs(int branch)>& sample)
    : plan(std::move(plan_)), modules(std::move(modules_)) {
  if (modules.size() == 1) modules.resize(plan.variants() * plan.layers(), modules[0]);
  for (std::size_t b = 0; b < plan.slots.size(); ++b)
    samples.push_back(sample(static_cast<int>(b)));
}

std::unique_ptr<CallableSet> Net::capture(Mode mode, Options options) const {
  options.mode = mode;
  return graph_callables(modules, samples, plan.base_order, plan, options);
}

Replay::Replay(const Net& net, Mode mode, Options options)
    : net_(net), set_(net.capture(mode, std::move(options))) {}

void Replay::run(const std::vector<int>& events) {
  for (const int event : events) event > 0 ? forward(event - 1) : backward(-event - 1);
}

void Replay::forward(int branch) {
  Tensors fresh;
  ++calls_;
  for (const at::Tensor& sample : net_.samples[branch].all()) {
    at::Tensor input = sample.detach().clone();
    if (input.is_floating_point()) input.mul_(1 + 0.25 * calls_);
    fresh.push_back(input.requires_grad_(sample.requires_grad()));
  }
  forward(branch, net_.samples[branch].with(fresh));
}

void Replay::forward(int branch, const Inputs& inputs) {
  Flight flight;
  Tensors leaves;
  for (const at::Tensor& input : inputs.all()) {
    leaves.push_back(input.detach().clone().requires_grad_(input.requires_grad()));
    if (!input.requires_grad()) continue;
    flight.wanted.push_back(input);
    flight.expected_wanted.push_back(leaves.back());
  }
  for (const at::Tensor& parameter : trainable_parameters(net_.module_of(branch))) {
    flight.wanted.push_back(parameter);
    flight.expected_wanted.push_back(parameter);
  }
  const Inputs eager = inputs.with(leaves);
  flight.expected = net_.module_of(branch).forward(eager.positional, eager.named);
  flight.outputs = set_->at(branch).forward(inputs);
  ASSERT_EQ(flight.outputs.size(), flight.expected.size());
  for (std::size_t i = 0; i < flight.outputs.size(); ++i)
    EXPECT_TRUE(same_bytes(flight.outputs[i], flight.expected[i]))
        << "branch " << branch << ", output " << i;
  addresses_[branch] = flight.outputs[0].const_data_ptr();
  flights_[branch] = std::move(flight);
}

void Replay::backward(int branch) {
  const auto node = flights_.extract(branch);
  const Flight& flight = node.mapped();
  const auto gradients = [](const Tensors& outputs, const Tensors& wanted) {
    Tensors roots, incoming;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      incoming.push_back(at::full_like(outputs[i], 1.0 + static_cast<double>(i)));
    }
    return torch::autograd::grad(roots, wanted, incoming, /*retain_graph=*/false,
                                 /*create_graph=*/false, /*allow_unused=*/true);
  };
  gradients_ = gradients(flight.outputs, flight.wanted);
  const Tensors expected = gradients(flight.expected, flight.expected_wanted);
  for (std::size_t i = 0; i < gradients_.size(); ++i)
    EXPECT_TRUE(same_bytes(gradients_[i], expected[i]))
        << "branch " << branch << ", gradient " << i;
}

}  // namespace slotgraph::properties

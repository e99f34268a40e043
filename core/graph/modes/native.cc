// Graphs without sharing between branches: one private pool for each branch, or for each variant.
#include <ATen/ops/empty_strided.h>
#include <fmt/format.h>

#include <map>

#include "core/graph/capture/branch_capture.h"
#include "core/graph/modes/graph_set.h"
#include "core/graph/modes/modes.h"
#include "core/graph/modes/warm_up_all.h"
#include "core/trace/steps.h"

namespace slotgraph {
namespace {

at::Tensor static_tensor(const TensorShape& shape) {
  return at::empty_strided(shape.sizes, shape.strides,
                           at::TensorOptions(at::kCUDA).dtype(shape.dtype));
}

// Static places of the inputs, each on its own; aliases among inputs are separated.
Tensors static_inputs(const Inputs& sample) {
  Tensors result;
  for (const at::Tensor& input : sample.all()) {
    const bool dense = input.is_non_overlapping_and_dense();
    const at::Tensor place =
        dense ? static_tensor({input.sizes().vec(), input.strides().vec(), input.scalar_type()})
              : static_tensor(gradient_shape(input));
    place.detach().copy_(input.detach());
    result.push_back(place.requires_grad_(input.requires_grad()));
  }
  return result;
}

class NativeCapture {
 public:
  NativeCapture(const CaptureRequest& request, const std::vector<BranchProfile>& profiles)
      : request_(request), profiles_(profiles), branches_(request.samples.size()) {}

  std::unique_ptr<CallableSet> run() {
    for (int variant = 0; variant < request_.plan.variants(); ++variant) {
      walk_variant(
          request_, variant, [&](int branch) { forward(branch); },
          [&](int branch) { backward(branch); });
    }
    std::vector<FlightPlan> flights;
    for (int i = 0; i < static_cast<int>(branches_.size()); ++i) {
      const Slot& slot = request_.plan.slots[i];
      // Nothing is shared: a branch excludes only itself.
      flights.push_back({i, i, slot.model_chunk, slot.physical_slot, std::nullopt});
    }
    std::vector<std::shared_ptr<PrivatePool>> pools;
    for (const auto& [key, pool] : pools_) pools.push_back(pool);
    return std::make_unique<GraphSet>(request_.options, std::move(branches_), std::move(flights),
                                      std::move(pools), 0, 0);
  }

 private:
  const PrivatePool& pool_of(int branch) {
    const bool shared = request_.options.mode == Mode::kPerVariant;
    auto& pool = pools_[shared ? request_.plan.variant_of(branch) : branch];
    if (!pool) pool = std::make_shared<PrivatePool>();
    return *pool;
  }

  BranchSource source(int branch) const {
    return {request_.module_of(branch), request_.samples[branch],
            profiles_[request_.plan.module_of(branch)], fmt::format("branch {}", branch)};
  }
  CaptureSite site(const PrivatePool& pool) const {
    return {pool.id(), request_.options.generators};
  }

  void forward(int branch) {
    const trace::PhaseScope phase(trace::Phase::capture_forward);
    const PrivatePool& pool = pool_of(branch);
    Tensors inputs;
    {
      const AllocationScope scope(pool);
      inputs = static_inputs(request_.samples[branch]);
    }
    OpenBranch open = capture_forward(source(branch), inputs, site(pool), {});
    for (const at::Tensor& output : open.outputs)
      open.branch.outputs.push_back(output.defined() ? output.detach() : output);
    open.branch.lent.assign(open.outputs.size(), false);
    open_[branch] = std::move(open);
  }

  void backward(int branch) {
    const trace::PhaseScope phase(trace::Phase::capture_backward);
    OpenBranch open = std::move(open_.at(branch));
    open_.erase(branch);
    const PrivatePool& pool = pool_of(branch);
    Tensors incoming;
    {
      const AllocationScope scope(pool);
      for (const at::Tensor& output : open.outputs) {
        if (output.defined() && output.requires_grad())
          incoming.push_back(static_tensor(gradient_shape(output)));
      }
    }
    if (!incoming.empty()) {
      open.branch.gradients = capture_backward(open, source(branch), incoming, site(pool), {});
    }
    branches_[branch] = std::move(open.branch);
  }

  const CaptureRequest& request_;
  const std::vector<BranchProfile>& profiles_;
  std::map<int, std::shared_ptr<PrivatePool>> pools_;
  std::map<int, OpenBranch> open_;
  std::vector<CapturedBranch> branches_;
};

}  // namespace

std::unique_ptr<CallableSet> make_native(const CaptureRequest& request) {
  // What a frame needs is learnt while it is captured.
  const std::vector<BranchProfile> profiles = warm_up_all(request, FrameKind::kFree);
  return NativeCapture(request, profiles).run();
}

}  // namespace slotgraph

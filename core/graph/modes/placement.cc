// Sharing mode `placement` (design.md 2): survivors are born in shared arenas, transients share one
// pool.
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/graph/capture/branch_capture.h"
#include "core/graph/modes/placement_layout.h"
#include "core/graph/modes/request.h"
#include "core/graph/warmup/profile.h"

namespace slotgraph {
namespace {

// A capture allocated otherwise than its profile says. Caught by the restart loop; carries the
// better profile.
struct ProfileMismatch {
  int module;
  bool forward;
  std::vector<ProfiledAllocation> merged;
};

// True if every allocation that lives was placed where its role says.
bool settled(const std::vector<ProfiledAllocation>& planned,
             const std::vector<ProfiledAllocation>& observed,
             const std::vector<Allocation>& allocations) {
  if (planned.size() != observed.size()) return false;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (planned[i].bytes != observed[i].bytes) return false;
    if (!observed[i].role) continue;
    const bool same_place =
        planned[i].role && planned[i].role->kind == observed[i].role->kind &&
        (observed[i].role->kind == Role::Kind::kRest || planned[i].role == observed[i].role);
    if (!allocations[i].placed || !same_place) return false;
  }
  return true;
}

class PlacementCapture {
 public:
  PlacementCapture(const CaptureRequest& request, const std::vector<BranchProfile>& profiles)
      : request_(request),
        profiles_(profiles),
        layout_(lay_out(request, profiles)),
        pool_(std::make_shared<PrivatePool>()),
        slab_(std::make_shared<Slab>(*pool_, layout_.bytes)),
        branches_(request.samples.size()) {}

  std::unique_ptr<CallableSet> run() {
    for (const int variant : variants_by_survivor_bytes()) {
      walk_variant(
          request_, variant, [&](int branch) { forward(branch); },
          [&](int branch) { backward(branch); });
    }
    return std::make_unique<GraphSet>(std::move(branches_), flights(), std::vector{pool_},
                                      layout_.arena_bytes);
  }

 private:
  std::vector<int> variants_by_survivor_bytes() const {
    std::vector<std::size_t> bytes(request_.plan.variants());
    for (std::size_t module = 0; module < profiles_.size(); ++module) {
      for (const ProfiledAllocation& allocation : profiles_[module].forward) {
        if (allocation.role) bytes[module / request_.plan.layers()] += allocation.bytes;
      }
    }
    std::vector<int> variants(bytes.size());
    std::iota(variants.begin(), variants.end(), 0);
    std::stable_sort(variants.begin(), variants.end(),
                     [&](int a, int b) { return bytes[a] > bytes[b]; });
    return variants;
  }

  std::vector<FlightPlan> flights() const {
    std::vector<FlightPlan> result;
    for (std::size_t i = 0; i < request_.samples.size(); ++i) {
      const Slot& slot = request_.plan.slots[i];
      const int family = request_.plan.frame(slot.model_chunk, slot.physical_slot, slot.layer);
      std::optional<int> gradient;
      if (returns_leading_gradient(static_cast<int>(i))) gradient = slot.user_grad_arena_id;
      result.push_back(
          {slot.saved_arena_id, family, slot.model_chunk, slot.physical_slot, gradient});
    }
    return result;
  }

  const Slot& slot_of(int branch) const { return request_.plan.slots[branch]; }
  const BranchProfile& profile_of(int branch) const {
    return profiles_[slot_of(branch).warmup_alias_group];
  }
  int layer_of(int branch) const {
    return slot_of(branch).warmup_alias_group % request_.plan.layers();
  }

  bool returns_leading_gradient(int branch) const {
    const BranchProfile& profile = profile_of(branch);
    const bool placed = std::any_of(profile.backward.begin(), profile.backward.end(),
                                    [](const auto& a) { return a.role.has_value(); });
    return placed || profile.copied_gradient_bytes;
  }

  Tensors static_inputs(int branch) const {
    const Arena arena = layout_.saved_arena(slab_, slot_of(branch));
    const FrameLayout& frame = layout_.frames[layer_of(branch)];
    const InputPlaces places = input_places(request_.samples[branch]);
    const Tensors samples = request_.samples[branch].all();
    Tensors result;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      std::byte* const address =
          arena.base() + frame.offsets.at(places.of_input[i].role) + places.of_input[i].offset;
      const at::Tensor input = borrowed_tensor(address, samples[i].sizes(), samples[i].strides(),
                                               samples[i].scalar_type(), slab_);
      result.push_back(input.requires_grad_(samples[i].requires_grad()));
    }
    return result;
  }

  void forward(int branch) {
    const PlacementPlan plan =
        placement_plan(profile_of(branch).forward, layout_.frames[layer_of(branch)],
                       layout_.saved_arena(slab_, slot_of(branch)));
    OpenBranch open = capture_forward(request_.module_of(branch), request_.samples[branch],
                                      static_inputs(branch), pool_->id(), plan);
    const std::vector<Allocation> allocations = open.forward_recording->snapshot();
    const auto observed = classify_forward(allocations, open.outputs);
    if (!settled(profile_of(branch).forward, observed, allocations)) {
      throw ProfileMismatch{slot_of(branch).warmup_alias_group, true,
                            merge(profile_of(branch).forward, observed)};
    }
    for (const at::Tensor& output : open.outputs)
      open.branch.outputs.push_back(static_output(output, branch));
    open_[branch] = std::move(open);
  }

  // Arena memory is borrowed; a view of a parameter or buffer stays what it is.
  at::Tensor static_output(const at::Tensor& output, int branch) const {
    if (output.numel() == 0 || !slab_->contains(output.const_data_ptr())) {
      Tensors state = parameters_of(request_.module_of(branch));
      const Tensors buffers = buffers_of(request_.module_of(branch));
      state.insert(state.end(), buffers.begin(), buffers.end());
      const bool known = output.numel() == 0 ||
                         std::any_of(state.begin(), state.end(),
                                     [&](const at::Tensor& t) { return t.is_alias_of(output); });
      if (!known) {
        throw Error({"C05", fmt::format("output of branch {}", branch),
                     "memory of neither the frame nor its module",
                     "outputs that forward computes, or views of inputs, parameters or buffers",
                     "return a copy of tensors that live elsewhere"});
      }
      return output.detach();
    }
    return borrowed_tensor(output.data_ptr(), output.sizes(), output.strides(),
                           output.scalar_type(), slab_);
  }

  Tensors staging(int branch) const {
    const std::vector<TensorShape>& shapes = profile_of(branch).incoming;
    const std::vector<std::size_t>& offsets = layout_.staging.at(shapes);
    Tensors result;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      result.push_back(borrowed_tensor(slab_->base() + offsets[i], shapes[i].sizes,
                                       shapes[i].strides, shapes[i].dtype, slab_));
    }
    return result;
  }

  void backward(int branch) {
    OpenBranch open = std::move(open_.at(branch));
    open_.erase(branch);
    if (!profile_of(branch).incoming.empty()) capture_gradients(open, branch);
    open.inputs.clear();
    open.outputs.clear();
    const bool leaks = open.forward_recording->any_alive() ||
                       (open.backward_recording && open.backward_recording->any_alive());
    if (leaks) {
      throw Error({"W03", fmt::format("capture of branch {}", branch),
                   "an allocation that outlives the frame's outputs, gradients and autograd graph",
                   "caches that exist after warm-up", "allocate caches once, before the capture"});
    }
    branches_[branch] = std::move(open.branch);
  }

  void capture_gradients(OpenBranch& open, int branch) {
    const Arena arena = layout_.gradient_arena(slab_, slot_of(branch));
    const FrameLayout& frame = layout_.gradients[layer_of(branch)];
    const PlacementPlan plan = placement_plan(profile_of(branch).backward, frame, arena);
    at::Tensor copy;
    if (profile_of(branch).copied_gradient_bytes) {
      const TensorShape shape = gradient_shape(open.inputs[0]);
      copy = borrowed_tensor(arena.base() + frame.offsets.at({Role::Kind::kGradient, 0}),
                             shape.sizes, shape.strides, shape.dtype, slab_);
    }
    Tensors gradients = capture_backward(open, staging(branch), copy, pool_->id(), plan);
    const std::vector<Allocation> allocations = open.backward_recording->snapshot();
    const at::Tensor leading = open.inputs.empty() || copy.defined() ? at::Tensor() : gradients[0];
    const auto observed = classify_backward(allocations, leading);
    if (!settled(profile_of(branch).backward, observed, allocations)) {
      throw ProfileMismatch{slot_of(branch).warmup_alias_group, false,
                            merge(profile_of(branch).backward, observed)};
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const at::Tensor& gradient = gradients[i];
      if (!gradient.defined()) {
        open.branch.gradients.emplace_back();
      } else if (i == 0 && copy.defined()) {
        open.branch.gradients.push_back(copy);
      } else {
        // Transient memory: valid from the replay until the next one, which is when it is cloned.
        open.branch.gradients.push_back(borrowed_tensor(gradient.data_ptr(), gradient.sizes(),
                                                        gradient.strides(), gradient.scalar_type(),
                                                        slab_));
      }
    }
    open.branch.leading_stays = returns_leading_gradient(branch);
  }

  const CaptureRequest& request_;
  const std::vector<BranchProfile>& profiles_;
  PlacementLayout layout_;
  std::shared_ptr<PrivatePool> pool_;
  std::shared_ptr<Slab> slab_;
  std::map<int, OpenBranch> open_;
  std::vector<CapturedBranch> branches_;
};

std::vector<BranchProfile> warm_up_all(const CaptureRequest& request) {
  std::vector<BranchProfile> profiles(request.modules.size());
  std::vector<bool> done(request.modules.size());
  for (std::size_t i = 0; i < request.samples.size(); ++i) {
    const int module = request.plan.slots[i].warmup_alias_group;
    if (done[module]) continue;
    done[module] = true;
    profiles[module] =
        warm_up(request.modules[module], request.samples[i], request.options.warm_up_iterations);
  }
  return profiles;
}

}  // namespace

std::unique_ptr<CallableSet> make_placement(const CaptureRequest& request) {
  std::vector<BranchProfile> profiles = warm_up_all(request);
  device::synchronise();
  c10::cuda::CUDACachingAllocator::emptyCache();
  for (int attempt = 0;; ++attempt) {
    try {
      return PlacementCapture(request, profiles).run();
    } catch (const ProfileMismatch& mismatch) {
      if (attempt == request.options.restarts) {
        throw Error({"W04", fmt::format("module {}", mismatch.module),
                     fmt::format("a {} that allocates otherwise in every capture",
                                 mismatch.forward ? "forward" : "backward"),
                     "the same sequence of allocations each time",
                     "copying such frames is not supported: keep them eager"});
      }
      BranchProfile& profile = profiles[mismatch.module];
      (mismatch.forward ? profile.forward : profile.backward) = mismatch.merged;
    }
  }
}

}  // namespace slotgraph

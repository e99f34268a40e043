#include "core/graph/modes/slot_capture.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/graph/plain_tensor.h"
#include "core/graph/warmup/warm_up.h"
#include "core/memory/borrowed.h"
#include "core/memory/checkpoint.h"
#include "core/trace/steps.h"

namespace slotgraph {
namespace {

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

std::size_t survivor_bytes(const BranchProfile& profile, const BranchLayout* copy) {
  if (copy) return static_cast<std::size_t>(copy->need());
  std::size_t bytes = 0;
  for (const ProfiledAllocation& allocation : profile.forward)
    bytes += allocation.role ? allocation.bytes : 0;
  return bytes;
}

// The layout is complete before anything is allocated.
SlotPlaces make_places(const CaptureRequest& request, const std::vector<BranchProfile>& profiles,
                       const std::vector<bool>& copied, const PrivatePool& pool) {
  const trace::PhaseScope phase(trace::Phase::layout);
  SlotLayout layout = lay_out(request, profiles, copied);
  trace::reached(trace::Step::arena_allocation);
  auto slab = std::make_shared<Slab>(pool, layout.bytes);
  trace::reached(trace::Step::staging);
  return {request, profiles, std::move(layout), std::move(slab)};
}

}  // namespace

std::vector<BranchProfile> warm_up_all(const CaptureRequest& request, Watch watch) {
  std::vector<BranchProfile> profiles(request.modules.size());
  for (int module = 0; module < static_cast<int>(profiles.size()); ++module) {
    const Inputs& sample = request.samples[request.first_branch(module)];
    profiles[module] = warm_up(request.modules[module], sample, module, request.options, watch);
  }
  c10::cuda::CUDACachingAllocator::emptyCache();
  return profiles;
}

SlotCapture::SlotCapture(const CaptureRequest& request, const std::vector<BranchProfile>& profiles,
                         const std::vector<bool>& copied)
    : request_(request),
      profiles_(profiles),
      pool_(std::make_shared<PrivatePool>()),
      places_(make_places(request, profiles, copied, *pool_)),
      branches_(request.samples.size()) {}

std::vector<c10::Storage> SlotCapture::roots() const {
  std::vector<c10::Storage> roots{places_.slab()->storage()};
  for (const GraphModule& module : request_.modules) {
    if (!module.held) continue;
    for (const at::Tensor& tensor : module.held())
      if (tensor.defined()) roots.push_back(tensor.storage());
  }
  for (const auto& [branch, open] : open_) {
    for (const auto& original : open.originals) {
      if (auto storage = original.lock()) roots.emplace_back(std::move(storage));
    }
  }
  return roots;
}

BranchSource SlotCapture::source(int branch, const Tensors& inputs,
                                 const CopyTargets* copies) const {
  return {request_.module_of(branch),
          request_.samples[branch],
          inputs,
          &profile_of(branch).observation,
          copies,
          fmt::format("capture of branch {}", branch)};
}

// What a capture of a copied frame leaves in the pool must belong to a module.
void SlotCapture::check_live(const std::map<const void*, std::size_t>& before) const {
  std::map<const void*, std::size_t> added = topology_of(*pool_).live();
  for (const auto& [address, bytes] : before) added.erase(address);
  if (!added.empty()) (void)resolve_owners(added, roots());
}

void SlotCapture::forward(int branch, bool lockstep) {
  const trace::PhaseScope phase(trace::Phase::capture_forward);
  const Tensors inputs = places_.static_inputs(branch);
  if (places_.copy_of(branch)) {
    const auto before =
        lockstep ? std::map<const void*, std::size_t>() : topology_of(*pool_).live();
    targets_[branch] = places_.copy_targets(branch, inputs);
    OpenBranch open =
        capture_forward(source(branch, inputs, &targets_[branch]), site(), std::nullopt);
    keep_outputs(open, branch);
    open_[branch] = std::move(open);
    if (!lockstep) check_live(before);
    return;
  }
  OpenBranch open =
      capture_forward(source(branch, inputs, nullptr), site(), places_.forward_plan(branch));
  const std::vector<Allocation> allocations = open.forward_recording->snapshot();
  const auto observed = classify_forward(allocations, open.outputs);
  if (!settled(profile_of(branch).forward, observed, allocations)) {
    throw ProfileMismatch{module_of(branch), true, merge(profile_of(branch).forward, observed),
                          open.forward_recording};
  }
  keep_outputs(open, branch);
  open_[branch] = std::move(open);
}

// Frame memory is borrowed: outputs of one storage share one again. A view of a parameter or buffer
// stays what it is.
void SlotCapture::keep_outputs(OpenBranch& open, int branch) const {
  const Tensors state = state_of(request_.module_of(branch));
  Tensors in_frame;
  for (const at::Tensor& output : open.outputs) {
    const bool inside =
        output.defined() && output.numel() > 0 && places_.slab()->contains(output.const_data_ptr());
    open.branch.lent.push_back(inside);
    in_frame.push_back(inside ? output : at::Tensor());
  }
  open.branch.outputs = borrowed_alike(in_frame, places_.slab());
  for (std::size_t i = 0; i < open.outputs.size(); ++i) {
    const at::Tensor& output = open.outputs[i];
    if (open.branch.lent[i] || !output.defined()) continue;
    const bool in_state = std::any_of(state.begin(), state.end(), [&](const at::Tensor& tensor) {
      return tensor.is_alias_of(output);
    });
    if (output.is_cuda() && output.numel() == 0) {
      // Without bytes: it would keep the storage of others alive.
      open.branch.outputs[i] =
          borrowed_tensor(nullptr, output.sizes(), output.strides(), output.scalar_type(), nullptr);
    } else if (in_state || output.is_cpu()) {
      open.branch.outputs[i] = output.detach();
    } else {
      throw Error({"PM02", fmt::format("output {} of branch {}", i, branch),
                   "memory of neither the frame nor its module",
                   "outputs that forward computes, or views of inputs, parameters or buffers",
                   "return a copy of tensors that live elsewhere"});
    }
  }
}

void SlotCapture::backward(int branch, bool lockstep) {
  const trace::PhaseScope phase(trace::Phase::capture_backward);
  OpenBranch open = std::move(open_.at(branch));
  open_.erase(branch);
  if (!profile_of(branch).incoming.empty()) {
    const bool watch = places_.copy_of(branch) && !lockstep;
    const auto before = watch ? topology_of(*pool_).live() : std::map<const void*, std::size_t>();
    keep_gradients(open, branch, capture_gradients(open, branch));
    open.inputs.clear();
    open.outputs.clear();
    if (watch) check_live(before);
  }
  open.inputs.clear();
  open.outputs.clear();
  targets_.erase(branch);
  if (!places_.copy_of(branch)) {
    check_nothing_lives(request_.module_of(branch), *open.forward_recording,
                        open.backward_recording.get(), fmt::format("capture of branch {}", branch));
  }
  copied_bytes_ += open.copied_bytes;
  open.branch.ownership = places_.ownership(branch);
  branches_[branch] = std::move(open.branch);
}

Tensors SlotCapture::capture_gradients(OpenBranch& open, int branch) {
  const BranchProfile& profile = profile_of(branch);
  const Tensors inputs = open.inputs;
  if (places_.copy_of(branch)) {
    return capture_backward(open, source(branch, inputs, &targets_.at(branch)),
                            places_.incoming(branch), site(), std::nullopt);
  }
  const CopyTargets copy = places_.leading_target(branch);
  if (!copy.gradients.empty()) targets_[branch] = copy;
  Tensors gradients =
      capture_backward(open, source(branch, inputs, copy.gradients.empty() ? nullptr : &copy),
                       places_.incoming(branch), site(), places_.backward_plan(branch));
  const std::vector<Allocation> allocations = open.backward_recording->snapshot();
  const at::Tensor leading = copy.gradients.empty() ? gradients[0] : at::Tensor();
  const auto observed = classify_backward(allocations, leading);
  if (!settled(profile.backward, observed, allocations))
    throw ProfileMismatch{module_of(branch), false, merge(profile.backward, observed),
                          open.backward_recording};
  return gradients;
}

// Gradients of inputs with a place stay there; the others are in transient memory, valid from their
// replay until the next one, which is when they are copied or lent.
void SlotCapture::keep_gradients(OpenBranch& open, int branch, const Tensors& gradients) const {
  const auto targets = targets_.find(branch);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const at::Tensor& gradient = gradients[i];
    const bool placed = targets != targets_.end() && i < targets->second.gradients.size() &&
                        targets->second.gradients[i].defined();
    if (!gradient.defined()) {
      open.branch.gradients.emplace_back();
    } else if (placed) {
      open.branch.gradients.push_back(targets->second.gradients[i]);
    } else {
      open.branch.gradients.push_back(borrowed_tensor(gradient.data_ptr(), gradient.sizes(),
                                                      gradient.strides(), gradient.scalar_type(),
                                                      places_.slab()));
    }
  }
  open.branch.leading_stays = places_.returns_leading_gradient(branch);
}

std::vector<int> SlotCapture::variants_by_survivor_bytes() const {
  const Plan& plan = request_.plan;
  std::vector<std::size_t> bytes(static_cast<std::size_t>(plan.variants()));
  for (int module = 0; module < static_cast<int>(profiles_.size()); ++module) {
    const int first = request_.first_branch(module);
    bytes[module / plan.layers()] += survivor_bytes(profiles_[module], places_.copy_of(first));
  }
  std::vector<int> variants(bytes.size());
  std::iota(variants.begin(), variants.end(), 0);
  std::stable_sort(variants.begin(), variants.end(),
                   [&](int a, int b) { return bytes[a] > bytes[b]; });
  return variants;
}

void SlotCapture::capture_variant_major() {
  for (const int variant : variants_by_survivor_bytes()) {
    walk_variant(
        request_, variant, [&](int branch) { forward(branch); },
        [&](int branch) { backward(branch); });
  }
}

std::vector<FlightPlan> SlotCapture::flights() const {
  std::vector<FlightPlan> result;
  for (int i = 0; i < static_cast<int>(request_.samples.size()); ++i) {
    const Slot& slot = slot_of(i);
    const int family = request_.plan.frame(slot.model_chunk, slot.physical_slot, slot.layer);
    std::optional<int> gradient;
    if (places_.returns_leading_gradient(i)) gradient = slot.user_grad_arena_id;
    result.push_back({slot.saved_arena_id, family, slot.model_chunk, slot.physical_slot, gradient});
  }
  return result;
}

std::unique_ptr<CallableSet> SlotCapture::finish() {
  trace::reached(trace::Step::capture_finished);
  return std::make_unique<GraphSet>(request_.options, std::move(branches_), flights(),
                                    std::vector{pool_}, places_.layout().arena_bytes,
                                    copied_bytes_);
}

}  // namespace slotgraph

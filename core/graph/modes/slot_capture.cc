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
      copied_(copied),
      layout_(lay_out(request, profiles, copied)),
      pool_(std::make_shared<PrivatePool>()),
      slab_(std::make_shared<Slab>(*pool_, layout_.bytes)),
      branches_(request.samples.size()) {}

const BranchLayout* SlotCapture::copy_of(int branch) const {
  const auto& index = layout_.copy_of_branch[branch];
  return index ? &layout_.copies.branches[*index] : nullptr;
}

Arena SlotCapture::saved_arena(int branch) const {
  const auto it = layout_.saved.find(slot_of(branch).saved_arena_id);
  return it == layout_.saved.end() ? arena({}) : arena(it->second);
}

Arena SlotCapture::gradient_arena(int branch) const {
  const auto it = layout_.returned.find(slot_of(branch).user_grad_arena_id);
  return it == layout_.returned.end() ? arena({}) : arena(it->second);
}

bool SlotCapture::returns_leading_gradient(int branch) const {
  const auto& gradients = profile_of(branch).observation.user_gradients;
  return !gradients.empty() && gradients[0].kind != SurfaceTensor::Kind::kNone;
}

std::vector<c10::Storage> SlotCapture::roots() const {
  std::vector<c10::Storage> roots{slab_->storage()};
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

// Inputs that share a storage in the sample share one here.
Tensors SlotCapture::static_inputs(int branch) const {
  const Tensors samples = request_.samples[branch].all();
  const InputPlaces places = input_places(request_.samples[branch]);
  const bool copied = copy_of(branch) != nullptr;
  std::map<std::byte*, c10::Storage> storages;  // by address; only looked up
  Tensors result;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
    std::size_t offset = 0;
    if (copied) {
      const Extent& extent = layout_.input_storages[branch][i];
      base = slab_->base() + extent.offset;
      bytes = extent.bytes;
      offset = static_cast<std::size_t>(samples[i].storage_offset()) * samples[i].itemsize();
    } else {
      const FrameLayout& frame = layout_.frames[layer_of(branch)];
      base = saved_arena(branch).base() + frame.offsets.at(places.of_input[i].role);
      for (const Survivor& survivor : places.survivors)
        if (survivor.role == places.of_input[i].role) bytes = survivor.bytes;
      offset = places.of_input[i].offset;
    }
    auto it = storages.find(base);
    if (it == storages.end() || bytes == 0)
      it = storages.insert_or_assign(base, borrowed_storage(base, bytes, slab_)).first;
    const at::Tensor input = tensor_over(it->second, offset, samples[i].sizes(),
                                         samples[i].strides(), samples[i].scalar_type());
    result.push_back(input.requires_grad_(samples[i].requires_grad()));
  }
  return result;
}

CopyTargets SlotCapture::copy_targets(int branch, const Tensors& inputs) const {
  const BranchLayout& layout = *copy_of(branch);
  const Observation& seen = profile_of(branch).observation;
  const Arena arena = saved_arena(branch);
  const c10::Storage whole = borrowed_storage(arena.base(), arena.bytes, slab_);
  const auto view = [](const c10::Storage& storage, std::int64_t offset, const TensorSpec& spec) {
    return tensor_over(storage, static_cast<std::size_t>(offset), spec.sizes, spec.strides,
                       static_cast<at::ScalarType>(spec.dtype));
  };
  CopyTargets targets;
  for (std::size_t i = 0; i < seen.saved.size(); ++i) {
    const auto& place = layout.saved.places[i];
    if (!place && seen.saved[i].native) {
      // Without bytes: a tensor of its own, or it would keep the storage of others alive.
      targets.saved.push_back(view(borrowed_storage(nullptr, 0, nullptr), 0, seen.saved[i].tensor));
    } else if (!place) {
      targets.saved.emplace_back();
    } else if (place->region == SavedPlace::Region::kStaging) {
      targets.saved.push_back(view(inputs[0].storage(), place->offset, seen.saved[i].tensor));
    } else {
      targets.saved.push_back(view(whole, place->offset, seen.saved[i].tensor));
    }
  }
  // Outputs of one storage: one storage over the part of the arena that they fill.
  std::map<int, std::pair<std::int64_t, std::int64_t>> groups;
  for (std::size_t i = 0; i < seen.outputs.size(); ++i) {
    if (!layout.outputs.offsets[i]) continue;
    const std::int64_t begin = *layout.outputs.offsets[i];
    const std::int64_t end = begin + span_bytes(seen.outputs[i].tensor);
    const auto [it, first] = groups.try_emplace(seen.outputs[i].tensor.storage, begin, end);
    if (first) continue;
    it->second = {std::min(it->second.first, begin), std::max(it->second.second, end)};
  }
  std::map<int, c10::Storage> storages;
  for (const auto& [group, range] : groups) {
    storages[group] = borrowed_storage(arena.base() + range.first,
                                       static_cast<std::size_t>(range.second - range.first), slab_);
  }
  for (std::size_t i = 0; i < seen.outputs.size(); ++i) {
    const auto& offset = layout.outputs.offsets[i];
    const TensorSpec& spec = seen.outputs[i].tensor;
    targets.outputs.push_back(
        offset ? view(storages.at(spec.storage), *offset - groups.at(spec.storage).first, spec)
               : at::Tensor());
  }
  const Arena gradients = gradient_arena(branch);
  for (std::size_t i = 0; i < seen.user_gradients.size(); ++i) {
    const auto& offset = layout.user_gradients.offsets[i];
    if (!offset) {
      targets.gradients.emplace_back();
      continue;
    }
    const TensorSpec& spec = seen.user_gradients[i].tensor;
    const auto bytes = static_cast<std::size_t>(span_bytes(spec));
    targets.gradients.push_back(
        view(borrowed_storage(gradients.base() + *offset, bytes, slab_), 0, spec));
  }
  return targets;
}

Tensors SlotCapture::incoming(int branch) const {
  const std::vector<TensorShape>& shapes = profile_of(branch).incoming;
  const std::vector<std::size_t>& offsets = layout_.staging.at(shapes);
  Tensors result;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    result.push_back(borrowed_tensor(slab_->base() + offsets[i], shapes[i].sizes, shapes[i].strides,
                                     shapes[i].dtype, slab_));
  }
  return result;
}

// What a capture of a copied frame leaves in the pool must belong to a module.
void SlotCapture::check_live(const std::map<const void*, std::size_t>& before) const {
  std::map<const void*, std::size_t> added = topology_of(*pool_).live();
  for (const auto& [address, bytes] : before) added.erase(address);
  if (!added.empty()) (void)resolve_owners(added, roots());
}

void SlotCapture::forward(int branch, bool lockstep) {
  const Tensors inputs = static_inputs(branch);
  if (copy_of(branch)) {
    const auto before =
        lockstep ? std::map<const void*, std::size_t>() : topology_of(*pool_).live();
    targets_[branch] = copy_targets(branch, inputs);
    OpenBranch open =
        capture_forward(source(branch, inputs, &targets_[branch]), site(), std::nullopt);
    keep_outputs(open, branch);
    open_[branch] = std::move(open);
    if (!lockstep) check_live(before);
    return;
  }
  const PlacementPlan plan = placement_plan(profile_of(branch).forward,
                                            layout_.frames[layer_of(branch)], saved_arena(branch));
  OpenBranch open = capture_forward(source(branch, inputs, nullptr), site(), plan);
  const std::vector<Allocation> allocations = open.forward_recording->snapshot();
  const auto observed = classify_forward(allocations, open.outputs);
  if (!settled(profile_of(branch).forward, observed, allocations)) {
    throw ProfileMismatch{module_of(branch), true, merge(profile_of(branch).forward, observed)};
  }
  keep_outputs(open, branch);
  open_[branch] = std::move(open);
}

// Frame memory is borrowed: outputs of one storage share one again. A view of a parameter or buffer
// stays what it is.
void SlotCapture::keep_outputs(OpenBranch& open, int branch) const {
  const Tensors state = state_of(request_.module_of(branch));
  std::map<const void*, std::pair<std::byte*, std::byte*>> groups;  // by storage; only looked up
  const auto in_frame = [&](const at::Tensor& output) {
    return output.defined() && output.numel() > 0 && slab_->contains(output.const_data_ptr());
  };
  for (const at::Tensor& output : open.outputs) {
    if (!in_frame(output)) continue;
    auto* const begin = static_cast<std::byte*>(output.data_ptr());
    std::byte* const end = begin + span_of(output);
    const auto [it, first] =
        groups.try_emplace(output.storage().unsafeGetStorageImpl(), begin, end);
    if (first) continue;
    it->second = {std::min(it->second.first, begin), std::max(it->second.second, end)};
  }
  std::map<const void*, c10::Storage> storages;
  for (const at::Tensor& output : open.outputs) {
    open.branch.lent.push_back(in_frame(output));
    if (in_frame(output)) {
      const void* const key = output.storage().unsafeGetStorageImpl();
      const auto [begin, end] = groups.at(key);
      auto it = storages.find(key);
      if (it == storages.end()) {
        it =
            storages
                .emplace(key, borrowed_storage(begin, static_cast<std::size_t>(end - begin), slab_))
                .first;
      }
      const auto offset = static_cast<const std::byte*>(output.const_data_ptr()) - begin;
      open.branch.outputs.push_back(tensor_over(it->second, static_cast<std::size_t>(offset),
                                                output.sizes(), output.strides(),
                                                output.scalar_type()));
      continue;
    }
    const bool known = !output.defined() || output.is_cpu() || output.numel() == 0 ||
                       std::any_of(state.begin(), state.end(),
                                   [&](const at::Tensor& t) { return t.is_alias_of(output); });
    if (!known) {
      throw Error({"PM02", fmt::format("output of branch {}", branch),
                   "memory of neither the frame nor its module",
                   "outputs that forward computes, or views of inputs, parameters or buffers",
                   "return a copy of tensors that live elsewhere"});
    }
    if (output.defined() && output.is_cuda() && output.numel() == 0) {
      // Without bytes: it would keep the storage of others alive.
      open.branch.outputs.push_back(borrowed_tensor(nullptr, output.sizes(), output.strides(),
                                                    output.scalar_type(), nullptr));
      continue;
    }
    open.branch.outputs.push_back(output.defined() ? output.detach() : output);
  }
}

void SlotCapture::backward(int branch, bool lockstep) {
  OpenBranch open = std::move(open_.at(branch));
  open_.erase(branch);
  if (!profile_of(branch).incoming.empty()) {
    const bool watch = copy_of(branch) && !lockstep;
    const auto before = watch ? topology_of(*pool_).live() : std::map<const void*, std::size_t>();
    keep_gradients(open, branch, capture_gradients(open, branch));
    open.inputs.clear();
    open.outputs.clear();
    if (watch) check_live(before);
  }
  open.inputs.clear();
  open.outputs.clear();
  targets_.erase(branch);
  if (!copy_of(branch)) {
    check_nothing_lives(request_.module_of(branch), *open.forward_recording,
                        open.backward_recording.get(), fmt::format("capture of branch {}", branch));
  }
  copied_bytes_ += open.copied_bytes;
  open.branch.ownership = ownership(branch);
  branches_[branch] = std::move(open.branch);
}

Tensors SlotCapture::capture_gradients(OpenBranch& open, int branch) {
  const BranchProfile& profile = profile_of(branch);
  const Tensors inputs = open.inputs;
  if (copy_of(branch)) {
    return capture_backward(open, source(branch, inputs, &targets_.at(branch)), incoming(branch),
                            site(), std::nullopt);
  }
  const Arena arena = gradient_arena(branch);
  const FrameLayout& frame = layout_.gradients[layer_of(branch)];
  // A leading gradient that this backward does not allocate is copied to its place.
  CopyTargets copy;
  if (profile.copied_gradient_bytes) {
    const TensorSpec& spec = profile.observation.user_gradients[0].tensor;
    copy.gradients = {borrowed_tensor(arena.base() + frame.offsets.at({Role::Kind::kGradient, 0}),
                                      spec.sizes, spec.strides,
                                      static_cast<at::ScalarType>(spec.dtype), slab_)};
    targets_[branch] = copy;
  }
  Tensors gradients =
      capture_backward(open, source(branch, inputs, copy.gradients.empty() ? nullptr : &copy),
                       incoming(branch), site(), placement_plan(profile.backward, frame, arena));
  const std::vector<Allocation> allocations = open.backward_recording->snapshot();
  const at::Tensor leading = copy.gradients.empty() ? gradients[0] : at::Tensor();
  const auto observed = classify_backward(allocations, leading);
  if (!settled(profile.backward, observed, allocations))
    throw ProfileMismatch{module_of(branch), false, merge(profile.backward, observed)};
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
                                                      slab_));
    }
  }
  open.branch.leading_stays = returns_leading_gradient(branch);
}

Ownership SlotCapture::ownership(int branch) const {
  Ownership result;
  const auto add = [](std::vector<Region>& regions, std::byte* begin, std::int64_t bytes) {
    if (bytes > 0) regions.push_back({begin, static_cast<std::size_t>(bytes)});
  };
  const BranchProfile& profile = profile_of(branch);
  std::byte* const saved = saved_arena(branch).base();
  std::byte* const returned = gradient_arena(branch).base();
  if (const BranchLayout* const copy = copy_of(branch)) {
    add(result.flight, saved, copy->need());
    const at::Tensor leading = static_inputs(branch)[0];
    add(result.flight, static_cast<std::byte*>(leading.data_ptr()), span_of(leading));
    if (returns_leading_gradient(branch)) {
      add(result.gradient, returned + *copy->user_gradients.offsets[0],
          span_bytes(profile.observation.user_gradients[0].tensor));
    }
    return result;
  }
  const auto& offsets = layout_.frames[layer_of(branch)].offsets;
  std::vector<Survivor> survivors = input_places(request_.samples[branch]).survivors;
  for (const ProfiledAllocation& allocation : profile.forward)
    if (allocation.role) survivors.push_back({*allocation.role, allocation.bytes});
  for (const Survivor& each : survivors)
    add(result.flight, saved + offsets.at(each.role), static_cast<std::int64_t>(each.bytes));
  if (returns_leading_gradient(branch)) {
    add(result.gradient,
        returned + layout_.gradients[layer_of(branch)].offsets.at({Role::Kind::kGradient, 0}),
        span_bytes(profile.observation.user_gradients[0].tensor));
  }
  return result;
}

std::vector<int> SlotCapture::variants_by_survivor_bytes() const {
  const Plan& plan = request_.plan;
  std::vector<std::size_t> bytes(static_cast<std::size_t>(plan.variants()));
  for (int module = 0; module < static_cast<int>(profiles_.size()); ++module) {
    const int first = request_.first_branch(module);
    bytes[module / plan.layers()] += survivor_bytes(profiles_[module], copy_of(first));
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
    if (returns_leading_gradient(i)) gradient = slot.user_grad_arena_id;
    result.push_back({slot.saved_arena_id, family, slot.model_chunk, slot.physical_slot, gradient});
  }
  return result;
}

std::unique_ptr<CallableSet> SlotCapture::finish() {
  return std::make_unique<GraphSet>(request_.options, std::move(branches_), flights(),
                                    std::vector{pool_}, layout_.arena_bytes, copied_bytes_);
}

}  // namespace slotgraph

#include "core/graph/modes/slot_places.h"

#include <algorithm>

#include "core/memory/borrowed.h"

namespace slotgraph {

const BranchLayout* SlotPlaces::copy_of(int branch) const {
  const auto& index = layout_.copy_of_branch[branch];
  return index ? &layout_.copies.branches[*index] : nullptr;
}

Arena SlotPlaces::saved(int branch) const {
  const auto it = layout_.saved.find(slot_of(branch).saved_arena_id);
  return it == layout_.saved.end() ? arena({}) : arena(it->second);
}

Arena SlotPlaces::gradients(int branch) const {
  const auto it = layout_.returned.find(slot_of(branch).user_grad_arena_id);
  return it == layout_.returned.end() ? arena({}) : arena(it->second);
}

bool SlotPlaces::returns_leading_gradient(int branch) const {
  const auto& gradients = profile_of(branch).observation.user_gradients;
  return !gradients.empty() && gradients[0].kind != SurfaceTensor::Kind::kNone;
}

// Inputs that share a storage in the sample share one here.
Tensors SlotPlaces::static_inputs(int branch) const {
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
      base = saved(branch).base() + frame.offsets.at(places.of_input[i].role);
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

CopyTargets SlotPlaces::copy_targets(int branch, const Tensors& inputs) const {
  const BranchLayout& layout = *copy_of(branch);
  const Observation& seen = profile_of(branch).observation;
  const Arena arena = saved(branch);
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
  const Arena returned = gradients(branch);
  for (std::size_t i = 0; i < seen.user_gradients.size(); ++i) {
    const auto& offset = layout.user_gradients.offsets[i];
    if (!offset) {
      targets.gradients.emplace_back();
      continue;
    }
    const TensorSpec& spec = seen.user_gradients[i].tensor;
    const auto bytes = static_cast<std::size_t>(span_bytes(spec));
    targets.gradients.push_back(
        view(borrowed_storage(returned.base() + *offset, bytes, slab_), 0, spec));
  }
  return targets;
}

Tensors SlotPlaces::incoming(int branch) const {
  const std::vector<TensorShape>& shapes = profile_of(branch).incoming;
  const std::vector<std::size_t>& offsets = layout_.staging.at(shapes);
  Tensors result;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    result.push_back(borrowed_tensor(slab_->base() + offsets[i], shapes[i].sizes, shapes[i].strides,
                                     shapes[i].dtype, slab_));
  }
  return result;
}

CopyTargets SlotPlaces::leading_target(int branch) const {
  const BranchProfile& profile = profile_of(branch);
  if (!profile.copied_gradient_bytes) return {};
  const TensorSpec& spec = profile.observation.user_gradients[0].tensor;
  std::byte* const place =
      gradients(branch).base() +
      layout_.gradients[layer_of(branch)].offsets.at({Role::Kind::kGradient, 0});
  CopyTargets targets;
  targets.gradients = {borrowed_tensor(place, spec.sizes, spec.strides,
                                       static_cast<at::ScalarType>(spec.dtype), slab_)};
  return targets;
}

PlacementPlan SlotPlaces::forward_plan(int branch) const {
  return placement_plan(profile_of(branch).forward, layout_.frames[layer_of(branch)],
                        saved(branch));
}

PlacementPlan SlotPlaces::backward_plan(int branch) const {
  return placement_plan(profile_of(branch).backward, layout_.gradients[layer_of(branch)],
                        gradients(branch));
}

Ownership SlotPlaces::ownership(int branch) const {
  Ownership result;
  const auto add = [](std::vector<Region>& regions, std::byte* begin, std::int64_t bytes) {
    if (bytes > 0) regions.push_back({begin, static_cast<std::size_t>(bytes)});
  };
  const BranchProfile& profile = profile_of(branch);
  std::byte* const kept = saved(branch).base();
  std::byte* const returned = gradients(branch).base();
  if (const BranchLayout* const copy = copy_of(branch)) {
    add(result.flight, kept, copy->need());
    const at::Tensor leading = static_inputs(branch)[0];
    add(result.flight, region_of(leading).begin,
        static_cast<std::int64_t>(region_of(leading).bytes));
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
    add(result.flight, kept + offsets.at(each.role), static_cast<std::int64_t>(each.bytes));
  if (returns_leading_gradient(branch)) {
    add(result.gradient,
        returned + layout_.gradients[layer_of(branch)].offsets.at({Role::Kind::kGradient, 0}),
        span_bytes(profile.observation.user_gradients[0].tensor));
  }
  return result;
}

}  // namespace slotgraph

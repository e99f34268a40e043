#include "core/graph/modes/placement_layout.h"

#include <algorithm>

namespace slotgraph {
namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

TensorShape shape_of(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

std::vector<Survivor> survivors_of(const std::vector<ProfiledAllocation>& allocations) {
  std::vector<Survivor> result;
  for (const ProfiledAllocation& allocation : allocations) {
    if (allocation.role) result.push_back({*allocation.role, allocation.bytes});
  }
  return result;
}

}  // namespace

InputPlaces input_places(const Inputs& sample) {
  struct Group {
    int position;
    std::size_t begin;
    std::size_t end;
  };
  const Tensors inputs = sample.all();
  std::map<const void*, Group> groups;  // by storage; only looked up
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::size_t begin =
        static_cast<std::size_t>(inputs[i].storage_offset()) * inputs[i].itemsize();
    const std::size_t end = begin + storage_bytes(shape_of(inputs[i]));
    const auto [it, first] = groups.try_emplace(inputs[i].storage().unsafeGetStorageImpl(),
                                                Group{static_cast<int>(i), begin, end});
    if (first) continue;
    it->second.begin = std::min(it->second.begin, begin);
    it->second.end = std::max(it->second.end, end);
  }
  InputPlaces places;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Group& group = groups.at(inputs[i].storage().unsafeGetStorageImpl());
    const std::size_t begin =
        static_cast<std::size_t>(inputs[i].storage_offset()) * inputs[i].itemsize();
    const Role role{Role::Kind::kInput, group.position};
    places.of_input.push_back({role, begin - group.begin});
    if (group.position == static_cast<int>(i))
      places.survivors.push_back({role, group.end - group.begin});
  }
  return places;
}

PlacementLayout lay_out(const CaptureRequest& request, const std::vector<BranchProfile>& profiles) {
  const Plan& plan = request.plan;
  PlacementLayout layout;
  std::vector<int> first_branch(profiles.size(), -1);
  for (int i = static_cast<int>(plan.slots.size()) - 1; i >= 0; --i)
    first_branch[plan.slots[i].warmup_alias_group] = i;
  for (int layer = 0; layer < plan.layers(); ++layer) {
    std::vector<std::vector<Survivor>> saved;
    std::vector<std::vector<Survivor>> returned;
    for (int variant = 0; variant < plan.variants(); ++variant) {
      const int module = variant * plan.layers() + layer;
      saved.push_back(survivors_of(profiles[module].forward));
      const InputPlaces inputs = input_places(request.samples[first_branch[module]]);
      saved.back().insert(saved.back().end(), inputs.survivors.begin(), inputs.survivors.end());
      returned.push_back(survivors_of(profiles[module].backward));
      if (const auto bytes = profiles[module].copied_gradient_bytes) {
        returned.back().push_back({{Role::Kind::kGradient, 0}, *bytes});
      }
    }
    layout.frames.push_back(place(saved));
    layout.gradients.push_back(place(returned));
  }
  for (const Slot& slot : plan.slots) {
    const int layer = slot.warmup_alias_group % plan.layers();
    auto& saved = layout.saved[slot.saved_arena_id].second;
    saved = std::max(saved, layout.frames[layer].bytes);
    auto& returned = layout.returned[slot.user_grad_arena_id].second;
    returned = std::max(returned, layout.gradients[layer].bytes);
  }
  for (auto* arenas : {&layout.saved, &layout.returned}) {
    for (auto& [colour, arena] : *arenas) {
      arena.first = layout.bytes;
      layout.bytes += arena.second;
    }
  }
  layout.arena_bytes = layout.bytes;
  for (const BranchProfile& profile : profiles) {
    if (layout.staging.contains(profile.incoming)) continue;
    std::vector<std::size_t> offsets;
    for (const TensorShape& shape : profile.incoming) {
      offsets.push_back(layout.bytes);
      layout.bytes += aligned(storage_bytes(shape));
    }
    layout.staging[profile.incoming] = offsets;
  }
  return layout;
}

Arena PlacementLayout::saved_arena(const std::shared_ptr<Slab>& slab, const Slot& slot) const {
  const auto [offset, bytes] = saved.at(slot.saved_arena_id);
  return {slab, offset, bytes};
}

Arena PlacementLayout::gradient_arena(const std::shared_ptr<Slab>& slab, const Slot& slot) const {
  const auto [offset, bytes] = returned.at(slot.user_grad_arena_id);
  return {slab, offset, bytes};
}

PlacementPlan placement_plan(const std::vector<ProfiledAllocation>& allocations,
                             const FrameLayout& layout, Arena arena) {
  PlacementPlan plan{{}, std::move(arena)};
  for (const ProfiledAllocation& allocation : allocations) {
    plan.entries.push_back({allocation.bytes, std::nullopt});
    if (allocation.role) plan.entries.back().offset = layout.offsets.at(*allocation.role);
  }
  return plan;
}

}  // namespace slotgraph

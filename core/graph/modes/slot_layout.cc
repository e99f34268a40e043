#include "core/graph/modes/slot_layout.h"

#include <algorithm>
#include <set>

#include "core/layout/surface.h"

namespace slotgraph {
namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

TensorShape shape_of(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

}  // namespace

std::vector<Survivor> survivors_of(const std::vector<ProfiledAllocation>& allocations) {
  std::vector<Survivor> result;
  for (const ProfiledAllocation& allocation : allocations) {
    if (allocation.role) result.push_back({*allocation.role, allocation.bytes});
  }
  return result;
}

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

namespace {

// Numbers of storages that mean the same in all branches of a call.
class StorageNumbers {
 public:
  int of(const at::Tensor& tensor) {
    return numbers_
        .emplace(tensor.storage().unsafeGetStorageImpl(), static_cast<int>(numbers_.size()))
        .first->second;
  }

 private:
  std::map<const void*, int> numbers_;  // only looked up
};

// From the numbers of a module's warm-up to those of the call.
std::map<int, int> renumbering(const RunTensors& seen, const GraphModule& module,
                               const Inputs& sample, StorageNumbers& numbers) {
  std::map<int, int> result;
  std::set<const void*> known;
  int next = 0;
  for (const at::Tensor& state : state_of(module)) {
    if (known.insert(state.storage().unsafeGetStorageImpl()).second)
      result[next++] = numbers.of(state);
  }
  const Tensors inputs = sample.all();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    result[seen.inputs[i].storage] = numbers.of(inputs[i]);
  return result;
}

// The variants of a frame show the same surface.
void check_variants(const CaptureRequest& request, const std::vector<BranchProfile>& profiles) {
  std::vector<Surface> outputs, gradients;
  for (int branch = 0; branch < static_cast<int>(request.plan.slots.size()); ++branch) {
    const Slot& slot = request.plan.slots[branch];
    const RunTensors& seen = profiles[slot.module].tensors;
    const int frame = request.plan.frame_of(branch);
    outputs.push_back({frame, slot.io_branch_id, seen.outputs});
    gradients.push_back({frame, slot.io_branch_id, seen.user_gradients});
  }
  check_frames(outputs);
  check_frames(gradients);
}

void lay_out_frames(const CaptureRequest& request, const std::vector<BranchProfile>& profiles,
                    SlotLayout& layout) {
  const Plan& plan = request.plan;
  for (int layer = 0; layer < plan.layers(); ++layer) {
    std::vector<std::vector<Survivor>> saved;
    std::vector<std::vector<Survivor>> returned;
    for (int variant = 0; variant < plan.variants(); ++variant) {
      const int module = variant * plan.layers() + layer;
      if (profiles[module].kind == FrameKind::kCopied) continue;
      saved.push_back(survivors_of(profiles[module].forward));
      const InputPlaces inputs = input_places(request.sample_of(module));
      saved.back().insert(saved.back().end(), inputs.survivors.begin(), inputs.survivors.end());
      returned.push_back(survivors_of(profiles[module].backward));
      if (const auto bytes = profiles[module].copied_gradient_bytes) {
        returned.back().push_back({{Role::Kind::kGradient, 0}, *bytes});
      }
    }
    layout.frames.push_back(lay_out_frame(saved));
    layout.gradients.push_back(lay_out_frame(returned));
  }
}

void raise(std::map<int, Extent>& arenas, int colour, std::size_t bytes) {
  Extent& arena = arenas[colour];
  arena.bytes = std::max(arena.bytes, bytes);
}

// Static inputs of copied branches: the leading one in its staging group's storage, the others in a
// copy of their sample's storage.
void lay_out_inputs(const std::vector<BranchTensors>& branches, const std::vector<int>& indices,
                    SlotLayout& layout) {
  const StagingPlan& staging = layout.copies.staging;
  std::map<std::pair<bool, int>, Extent> storages;  // (fresh, group or storage)
  const auto key = [&](std::size_t branch, std::size_t input) {
    const int group = staging.group_of_branch[branch];
    if (input > 0) return std::pair(false, branches[branch].inputs[input].storage);
    const auto& storage = staging.groups[group].storage;
    return storage ? std::pair(false, *storage) : std::pair(true, group);
  };
  for (std::size_t b = 0; b < branches.size(); ++b) {
    for (std::size_t i = 0; i < branches[b].inputs.size(); ++i) {
      const auto end = static_cast<std::size_t>(range_of(branches[b].inputs[i]).end);
      Extent& extent = storages[key(b, i)];
      extent.bytes = std::max(extent.bytes, end);
    }
  }
  for (auto& [name, extent] : storages) {
    extent.offset = layout.bytes;
    layout.bytes += aligned(extent.bytes);
  }
  for (std::size_t b = 0; b < branches.size(); ++b) {
    for (std::size_t i = 0; i < branches[b].inputs.size(); ++i)
      layout.input_storages[indices[b]].push_back(storages.at(key(b, i)));
  }
}

void lay_out_incoming(const std::vector<BranchProfile>& profiles, SlotLayout& layout) {
  // A set is in use during one replay, and replays are ordered: all sets share their bytes.
  const std::size_t base = layout.bytes;
  for (const BranchProfile& profile : profiles) {
    std::size_t end = base;
    std::vector<std::size_t> offsets;
    for (const TensorShape& shape : profile.incoming) {
      offsets.push_back(end);
      end += aligned(storage_bytes(shape));
    }
    layout.staging[profile.incoming] = offsets;
    layout.bytes = std::max(layout.bytes, end);
  }
}

}  // namespace

std::vector<BranchTensors> branch_tensors(const CaptureRequest& request,
                                          const std::vector<BranchProfile>& profiles,
                                          const std::vector<int>& branches) {
  const Plan& plan = request.plan;
  StorageNumbers numbers;
  std::vector<int> state;
  for (const GraphModule& module : request.modules) {
    for (const at::Tensor& tensor : state_of(module)) state.push_back(numbers.of(tensor));
  }
  for (const Inputs& sample : request.samples) {
    for (const at::Tensor& input : sample.all()) numbers.of(input);
  }
  std::vector<BranchTensors> result;
  // Storages that only one branch knows keep its own numbers, above all that the call gives:
  // layouts compare numbers of one branch with each other and with those of the call only.
  constexpr int first_local = 1 << 24;
  for (const int branch : branches) {
    const Slot& slot = plan.slots[branch];
    const RunTensors& seen = profiles[slot.module].tensors;
    const std::map<int, int> known =
        renumbering(seen, request.module_of(branch), request.samples[branch], numbers);
    const auto renumbered = [&](auto tensors, auto tensor_of) {
      for (auto& each : tensors) {
        TensorSpec& spec = tensor_of(each);
        const auto it = known.find(spec.storage);
        spec.storage = it == known.end() ? first_local + spec.storage : it->second;
      }
      return tensors;
    };
    const auto of_surface = [](SurfaceTensor& t) -> TensorSpec& { return t.tensor; };
    BranchTensors tensors{
        slot.colour,
        slot.gradient_colour,
        plan.frame_of(branch),
        slot.io_branch_id,
        renumbered(seen.inputs, [](TensorSpec& t) -> TensorSpec& { return t; }),
        seen.input_versions,
        state,
        renumbered(seen.outputs, of_surface),
        seen.output_versions,
        renumbered(seen.saved, [](SavedTensor& t) -> TensorSpec& { return t.tensor; }),
        seen.user_gradients};
    result.push_back(std::move(tensors));
  }
  return result;
}

SlotLayout lay_out_slots(const CaptureRequest& request,
                         const std::vector<BranchProfile>& profiles) {
  const Plan& plan = request.plan;
  check_variants(request, profiles);
  SlotLayout layout;
  layout.copy_of_branch.resize(plan.slots.size());
  layout.input_storages.resize(plan.slots.size());
  lay_out_frames(request, profiles, layout);
  std::vector<int> copied_branches;
  for (int i = 0; i < static_cast<int>(plan.slots.size()); ++i) {
    const Slot& slot = plan.slots[i];
    if (profiles[slot.module].kind == FrameKind::kCopied) {
      layout.copy_of_branch[i] = copied_branches.size();
      copied_branches.push_back(i);
      continue;
    }
    const int layer = plan.layer_of(i);
    raise(layout.arenas, slot.colour, layout.frames[layer].bytes);
    raise(layout.gradient_arenas, slot.gradient_colour, layout.gradients[layer].bytes);
  }
  const std::vector<BranchTensors> branches = branch_tensors(request, profiles, copied_branches);
  layout.copies = lay_out(branches);
  for (const auto& [colour, bytes] : layout.copies.arenas)
    raise(layout.arenas, colour, aligned(static_cast<std::size_t>(bytes)));
  for (const auto& [colour, bytes] : layout.copies.gradient_arenas)
    raise(layout.gradient_arenas, colour, aligned(static_cast<std::size_t>(bytes)));
  for (auto* const arenas : {&layout.arenas, &layout.gradient_arenas}) {
    for (auto& [colour, arena] : *arenas) {
      arena.offset = layout.bytes;
      layout.bytes += arena.bytes;
    }
  }
  layout.arena_bytes = layout.bytes;
  lay_out_inputs(branches, copied_branches, layout);
  lay_out_incoming(profiles, layout);
  return layout;
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

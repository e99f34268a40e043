#include "core/graph/modes/frame_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/graph/warmup/warm_up.h"
#include "core/memory/borrowed.h"

namespace slotgraph {
namespace {

// Where one input lies: its storage, and its own first byte in it.
struct InputExtent {
  Extent storage;  // in the slab
  std::size_t offset = 0;
};

// Inputs whose storages begin at one place share a storage.
Tensors inputs_over(const std::shared_ptr<Slab>& slab, const Tensors& samples,
                    const std::vector<InputExtent>& extents) {
  std::map<std::size_t, c10::Storage> storages;  // by offset; only looked up
  Tensors result;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto [begin, bytes] = extents[i].storage;
    auto it = storages.find(begin);
    if (it == storages.end() || bytes == 0) {
      it = storages.insert_or_assign(begin, borrowed_storage(slab->base() + begin, bytes, slab))
               .first;
    }
    const at::Tensor input = tensor_over(it->second, extents[i].offset, samples[i].sizes(),
                                         samples[i].strides(), samples[i].scalar_type());
    result.push_back(input.requires_grad_(samples[i].requires_grad()));
  }
  return result;
}

at::Tensor view(const c10::Storage& storage, std::int64_t offset, const TensorSpec& spec) {
  return tensor_over(storage, static_cast<std::size_t>(offset), spec.sizes, spec.strides,
                     static_cast<at::ScalarType>(spec.dtype));
}

void add(std::vector<Region>& regions, std::byte* begin, std::int64_t bytes) {
  if (bytes > 0) regions.push_back({begin, static_cast<std::size_t>(bytes)});
}

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

// Survivors are born in the arena; only a leading gradient that the backward does not allocate is
// copied.
class PlacedFrame final : public FrameMemory {
 public:
  PlacedFrame(const SlotBranch& branch, const SlotLayout& layout)
      : FrameMemory(branch, layout, inputs_of(branch, layout)) {}

  CaptureMemory begin_forward() const override {
    return {placement_plan(profile().forward, frame(), branch_.frame), {}};
  }

  void settle_forward(const OpenBranch& open) const override {
    const std::vector<Allocation> allocations = open.forward_recording->snapshot();
    const auto observed = classify_forward(allocations, open.outputs);
    if (settled(profile().forward, observed, allocations)) return;
    throw ProfileMismatch{branch_.module, true, merge(profile().forward, observed),
                          open.forward_recording};
  }

  CaptureMemory begin_backward() const override {
    CaptureMemory memory{placement_plan(profile().backward, gradient(), branch_.gradient), {}};
    if (profile().copied_gradient_bytes) {
      const TensorSpec& spec = profile().tensors.user_gradients[0].tensor;
      memory.copies.gradients = {borrowed_tensor(gradient_place(), spec.sizes, spec.strides,
                                                 static_cast<at::ScalarType>(spec.dtype), slab())};
    }
    return memory;
  }

  void settle_backward(const OpenBranch& open, const Tensors& gradients) const override {
    const std::vector<Allocation> allocations = open.backward_recording->snapshot();
    const at::Tensor leading = profile().copied_gradient_bytes ? at::Tensor() : gradients[0];
    const auto observed = classify_backward(allocations, leading);
    if (settled(profile().backward, observed, allocations)) return;
    throw ProfileMismatch{branch_.module, false, merge(profile().backward, observed),
                          open.backward_recording};
  }

  void end(const OpenBranch& open) const override {
    check_nothing_lives(branch_.source.module, *open.forward_recording,
                        open.backward_recording.get(), branch_.source.where);
  }

  std::size_t survivor_bytes() const override {
    std::size_t bytes = 0;
    for (const Survivor& survivor : survivors_of(profile().forward)) bytes += survivor.bytes;
    return bytes;
  }

  Ownership ownership() const override {
    Ownership result;
    std::vector<Survivor> survivors = input_places(branch_.source.sample).survivors;
    const std::vector<Survivor> born = survivors_of(profile().forward);
    survivors.insert(survivors.end(), born.begin(), born.end());
    for (const Survivor& each : survivors) {
      add(result.flight, branch_.frame.base() + frame().offsets.at(each.role),
          static_cast<std::int64_t>(each.bytes));
    }
    if (returns_leading_gradient()) {
      add(result.gradient, gradient_place(),
          span_bytes(profile().tensors.user_gradients[0].tensor));
    }
    return result;
  }

 private:
  static Tensors inputs_of(const SlotBranch& branch, const SlotLayout& layout) {
    const InputPlaces places = input_places(branch.source.sample);
    const FrameLayout& frame = layout.frames[branch.layer];
    std::vector<InputExtent> extents;
    for (const InputPlace& place : places.of_input) {
      const auto survivor =
          std::find_if(places.survivors.begin(), places.survivors.end(),
                       [&](const Survivor& each) { return each.role == place.role; });
      extents.push_back(
          {{branch.frame.offset + frame.offsets.at(place.role), survivor->bytes}, place.offset});
    }
    return inputs_over(branch.frame.slab, branch.source.sample.all(), extents);
  }

  const BranchProfile& profile() const { return branch_.source.profile; }
  const FrameLayout& frame() const { return layout_.frames[branch_.layer]; }
  const FrameLayout& gradient() const { return layout_.gradients[branch_.layer]; }
  std::byte* gradient_place() const {
    return branch_.gradient.base() + gradient().offsets.at({Role::Kind::kGradient, 0});
  }
};

// What is saved or returned is copied to the arena, wherever it was born.
class CopiedFrame final : public FrameMemory {
 public:
  CopiedFrame(const SlotBranch& branch, const SlotLayout& layout)
      : FrameMemory(branch, layout, inputs_of(branch, layout)) {}

  CaptureMemory begin_forward() const override { return {std::nullopt, {saved(), outputs(), {}}}; }
  void settle_forward(const OpenBranch&) const override {}
  CaptureMemory begin_backward() const override { return {std::nullopt, {{}, {}, gradients()}}; }
  void settle_backward(const OpenBranch&, const Tensors&) const override {}
  void end(const OpenBranch&) const override {}

  std::size_t survivor_bytes() const override { return static_cast<std::size_t>(copies().need()); }

  Ownership ownership() const override {
    Ownership result;
    add(result.flight, branch_.frame.base(), copies().need());
    const Region leading = region_of(inputs_[0]);
    add(result.flight, leading.begin, static_cast<std::int64_t>(leading.bytes));
    if (returns_leading_gradient()) {
      add(result.gradient, branch_.gradient.base() + *copies().user_gradients.offsets[0],
          span_bytes(seen().user_gradients[0].tensor));
    }
    return result;
  }

 private:
  static Tensors inputs_of(const SlotBranch& branch, const SlotLayout& layout) {
    const Tensors samples = branch.source.sample.all();
    std::vector<InputExtent> extents;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto first = static_cast<std::size_t>(samples[i].storage_offset());
      extents.push_back({layout.input_storages[branch.index][i], first * samples[i].itemsize()});
    }
    return inputs_over(branch.frame.slab, samples, extents);
  }

  const RunTensors& seen() const { return branch_.source.profile.tensors; }
  const BranchLayout& copies() const {
    return layout_.copies.branches[*layout_.copy_of_branch[branch_.index]];
  }

  Tensors saved() const {
    const Arena& arena = branch_.frame;
    const c10::Storage whole = borrowed_storage(arena.base(), arena.bytes, slab());
    Tensors result;
    for (std::size_t i = 0; i < seen().saved.size(); ++i) {
      const TensorSpec& spec = seen().saved[i].tensor;
      const auto& place = copies().saved.places[i];
      if (!place && seen().saved[i].internal) {
        // Without bytes: a tensor of its own, or it would keep the storage of others alive.
        result.push_back(view(borrowed_storage(nullptr, 0, nullptr), 0, spec));
      } else if (!place) {
        result.emplace_back();
      } else if (place->region == SavedPlace::Region::kStaging) {
        result.push_back(view(inputs_[0].storage(), place->offset, spec));
      } else {
        result.push_back(view(whole, place->offset, spec));
      }
    }
    return result;
  }

  // Outputs of one storage: one storage over the part of the arena that they fill.
  Tensors outputs() const {
    std::map<int, std::pair<std::int64_t, std::int64_t>> groups;  // by storage: begin and end
    for (std::size_t i = 0; i < seen().outputs.size(); ++i) {
      if (!copies().outputs.offsets[i]) continue;
      const TensorSpec& spec = seen().outputs[i].tensor;
      const std::int64_t begin = *copies().outputs.offsets[i];
      const std::int64_t end = begin + span_bytes(spec);
      const auto [it, first] = groups.try_emplace(spec.storage, begin, end);
      if (!first)
        it->second = {std::min(it->second.first, begin), std::max(it->second.second, end)};
    }
    std::map<int, c10::Storage> storages;
    for (const auto& [group, range] : groups) {
      storages[group] =
          borrowed_storage(branch_.frame.base() + range.first,
                           static_cast<std::size_t>(range.second - range.first), slab());
    }
    Tensors result;
    for (std::size_t i = 0; i < seen().outputs.size(); ++i) {
      const TensorSpec& spec = seen().outputs[i].tensor;
      const auto& offset = copies().outputs.offsets[i];
      result.push_back(
          offset ? view(storages.at(spec.storage), *offset - groups.at(spec.storage).first, spec)
                 : at::Tensor());
    }
    return result;
  }

  Tensors gradients() const {
    Tensors result;
    for (std::size_t i = 0; i < seen().user_gradients.size(); ++i) {
      const auto& offset = copies().user_gradients.offsets[i];
      if (!offset) {
        result.emplace_back();
        continue;
      }
      const TensorSpec& spec = seen().user_gradients[i].tensor;
      const auto bytes = static_cast<std::size_t>(span_bytes(spec));
      result.push_back(
          view(borrowed_storage(branch_.gradient.base() + *offset, bytes, slab()), 0, spec));
    }
    return result;
  }
};

}  // namespace

std::unique_ptr<FrameMemory> FrameMemory::of(const SlotBranch& branch, const SlotLayout& layout) {
  if (branch.source.profile.kind == FrameKind::kCopied)
    return std::make_unique<CopiedFrame>(branch, layout);
  return std::make_unique<PlacedFrame>(branch, layout);
}

bool FrameMemory::returns_leading_gradient() const {
  const auto& gradients = branch_.source.profile.tensors.user_gradients;
  return !gradients.empty() && gradients[0].kind != SurfaceTensor::Kind::kNone;
}

Tensors FrameMemory::incoming() const {
  const std::vector<TensorShape>& shapes = branch_.source.profile.incoming;
  const std::vector<std::size_t>& offsets = layout_.staging.at(shapes);
  Tensors result;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    result.push_back(borrowed_tensor(slab()->base() + offsets[i], shapes[i].sizes,
                                     shapes[i].strides, shapes[i].dtype, slab()));
  }
  return result;
}

}  // namespace slotgraph

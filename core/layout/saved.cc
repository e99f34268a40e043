#include "core/layout/saved.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/error.h"

namespace slotgraph {
namespace {

// A region and the byte of it at which the storage of a boundary would begin.
struct Anchor {
  SavedPlace::Region region;
  std::int64_t origin;
};

Anchor anchor_of(const Boundary& boundary, const SurfaceLayout& outputs) {
  // The staging buffer keeps the input's offset in its storage.
  if (boundary.kind == Boundary::Kind::kInput) return {SavedPlace::Region::kStaging, 0};
  const auto& offset = outputs.offsets.at(boundary.index);
  if (!offset) {
    throw Error(Error::kContract,
                {"L09", fmt::format("output {}", boundary.index),
                 "a saved tensor in an output that is in no arena", "an output of the arena",
                 "module state must not be saved as an activation"});
  }
  return {SavedPlace::Region::kArena, *offset - boundary.tensor.offset};
}

class Layout {
 public:
  Layout(const std::vector<SavedTensor>& saved, const std::vector<Boundary>& boundaries,
         const SurfaceLayout& outputs)
      : saved_(saved), boundaries_(boundaries), outputs_(outputs) {
    result_.places.resize(saved.size());
  }

  SavedLayout run() {
    for (const SavedTensor& each : saved_) tensors_.push_back(each.tensor);
    components_ = cluster(tensors_, groups());
    std::vector<int> spilled;
    for (int i = 0; i < static_cast<int>(components_.size()); ++i) {
      if (const auto anchor = resolve(components_[i])) {
        put(i, anchor->region, anchor->origin, true);
      } else {
        spilled.push_back(i);
      }
    }
    std::stable_sort(spilled.begin(), spilled.end(), [this](int a, int b) {
      return components_[a].range.bytes() > components_[b].range.bytes();
    });
    for (const int i : spilled) {
      const std::int64_t place = outputs_.bytes + result_.spill_bytes;
      put(i, SavedPlace::Region::kArena, place - components_[i].range.begin, false);
      result_.spill_bytes += align(components_[i].range.bytes());
    }
    return std::move(result_);
  }

 private:
  // Tensors of one storage and version, in the order in which they are first seen.
  std::vector<int> groups() const {
    std::map<std::pair<int, int>, int> numbers;
    std::vector<int> groups;
    for (const SavedTensor& each : saved_) {
      const int next = static_cast<int>(numbers.size());
      groups.push_back(
          each.internal
              ? numbers.emplace(std::pair(each.tensor.storage, each.version), next).first->second
              : -1);
    }
    return groups;
  }

  // Members that observe a boundary of the whole cluster all observe the same one: it contains each
  // of them, so each prefers the first of those by the same order.
  std::optional<Anchor> resolve(const Component& component) const {
    for (const int member : component.members) {
      const auto observed = boundary_of(saved_[member], boundaries_);
      if (!observed) continue;
      const Boundary& boundary = boundaries_[*observed];
      // Other inputs may sit in buffers that their caller uses again before the backward.
      const bool keeps = boundary.kind == Boundary::Kind::kOutput || boundary.index == 0;
      if (keeps && boundary.version == saved_[member].version &&
          range_of(boundary.tensor).contains(covered(component)))
        return anchor_of(boundary, outputs_);
    }
    return std::nullopt;
  }

  // The bytes of its members, without the rounding of its begin.
  ByteRange covered(const Component& component) const {
    return {range_of(tensors_[component.members.front()]).begin, component.range.end};
  }

  void put(int index, SavedPlace::Region region, std::int64_t origin, bool is_boundary) {
    for (const int member : components_[index].members) {
      const std::int64_t offset = origin + tensors_[member].offset;
      if (offset < 0 || offset % tensors_[member].item_bytes != 0) {
        throw Error(Error::kContract,
                    {"L08", fmt::format("saved tensor {}", member), fmt::format("byte {}", offset),
                     fmt::format("a multiple of its item, {} bytes", tensors_[member].item_bytes),
                     "the tensor's place in its storage is not aligned"});
      }
      result_.places[member] = SavedPlace{region, offset, is_boundary, index};
    }
  }

  const std::vector<SavedTensor>& saved_;
  const std::vector<Boundary>& boundaries_;
  const SurfaceLayout& outputs_;
  std::vector<TensorSpec> tensors_;
  std::vector<Component> components_;
  SavedLayout result_;
};

}  // namespace

std::optional<int> boundary_of(const SavedTensor& saved, const std::vector<Boundary>& boundaries) {
  const ByteRange range = range_of(saved.tensor);
  if (!saved.internal || range.bytes() == 0) return std::nullopt;
  const auto key = [&](const Boundary& boundary) {
    return std::tuple(boundary.version != saved.version, span_bytes(boundary.tensor), boundary.kind,
                      boundary.index, range.begin - boundary.tensor.offset);
  };
  std::optional<int> best;
  for (int i = 0; i < static_cast<int>(boundaries.size()); ++i) {
    const Boundary& boundary = boundaries[i];
    if (boundary.tensor.storage != saved.tensor.storage ||
        !range_of(boundary.tensor).contains(range))
      continue;
    if (!best || key(boundary) < key(boundaries[*best])) best = i;
  }
  return best;
}

SavedLayout lay_out_saved(const std::vector<SavedTensor>& saved,
                          const std::vector<Boundary>& boundaries, const SurfaceLayout& outputs) {
  return Layout(saved, boundaries, outputs).run();
}

}  // namespace slotgraph

#include "core/layout/surface.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"

namespace slotgraph {
namespace {

using Kind = SurfaceTensor::Kind;

[[noreturn]] void refuse(const char* rule, std::string where, std::string found,
                         std::string expected) {
  throw Error(Error::kContract, {rule, std::move(where), std::move(found), std::move(expected),
                                 "branches of a frame must have the same interface"});
}

const char* name_of(Kind kind) {
  return kind == Kind::kNone ? "no tensor" : kind == Kind::kArena ? "a tensor" : "module state";
}

// Two positions that lie in arenas in both branches share a storage in both or in neither.
void check_aliases(const Surface& first, const Surface& other, const std::string& where) {
  const auto comparable = [&](std::size_t i) {
    return first.tensors[i].kind == Kind::kArena && other.tensors[i].kind == Kind::kArena;
  };
  const auto share = [](const Surface& surface, std::size_t i, std::size_t j) {
    return surface.tensors[i].tensor.storage == surface.tensors[j].tensor.storage;
  };
  for (std::size_t i = 0; i < first.tensors.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!comparable(i) || !comparable(j) || share(first, i, j) == share(other, i, j)) continue;
      refuse("L04", fmt::format("{}, tensors {} and {}", where, j, i),
             share(other, i, j) ? "one storage" : "two storages",
             fmt::format("{}, as in branch {}", share(first, i, j) ? "one" : "two", first.branch));
    }
  }
}

void check_pair(const Surface& first, const Surface& other) {
  const std::string where = fmt::format("frame {}, branch {}", other.frame, other.branch);
  if (first.tensors.size() != other.tensors.size()) {
    refuse("L03", where, fmt::format("{} tensors", other.tensors.size()),
           fmt::format("{}, as branch {}", first.tensors.size(), first.branch));
  }
  check_aliases(first, other, where);
  for (std::size_t i = 0; i < first.tensors.size(); ++i) {
    const SurfaceTensor &a = first.tensors[i], &b = other.tensors[i];
    const std::string at = fmt::format("{}, tensor {}", where, i);
    const std::string as = fmt::format(", as in branch {}", first.branch);
    if ((a.kind == Kind::kNone) != (b.kind == Kind::kNone))
      refuse("L05", at, name_of(b.kind), name_of(a.kind) + as);
    if (a.kind != b.kind) refuse("L06", at, name_of(b.kind), name_of(a.kind) + as);
    if (a.kind != Kind::kArena) continue;
    if (a.tensor.dtype != b.tensor.dtype) refuse("L07", at, "another type", "one type" + as);
    if (a.tensor.device != b.tensor.device) refuse("L07", at, "another device", "one device" + as);
    if (a.tensor.requires_grad != b.tensor.requires_grad) {
      refuse("L07", at, fmt::format("requires_grad {}", b.tensor.requires_grad),
             fmt::format("{}{}", a.tensor.requires_grad, as));
    }
  }
}

}  // namespace

SurfaceLayout lay_out_outputs(const std::vector<SurfaceTensor>& outputs) {
  struct Group {
    ByteRange range;
    std::int64_t alignment = 1;
    std::int64_t place = 0;
  };
  std::map<int, std::size_t> group_of_storage;
  std::vector<Group> groups;
  for (const SurfaceTensor& output : outputs) {
    if (output.kind != Kind::kArena) continue;
    const ByteRange range = range_of(output.tensor);
    const auto [entry, is_new] = group_of_storage.emplace(output.tensor.storage, groups.size());
    if (is_new) groups.push_back({range, 1, 0});
    Group& group = groups[entry->second];
    group.range.begin = std::min(group.range.begin, range.begin);
    group.range.end = std::max(group.range.end, range.end);
    group.alignment = std::max<std::int64_t>(group.alignment, output.tensor.item_bytes);
  }
  SurfaceLayout layout;
  for (Group& group : groups) {
    group.range.begin -= group.range.begin % group.alignment;
    group.place = layout.bytes;
    layout.bytes = align(layout.bytes + group.range.bytes());
  }
  for (const SurfaceTensor& output : outputs) {
    if (output.kind != Kind::kArena) {
      layout.offsets.emplace_back();
      continue;
    }
    const Group& group = groups[group_of_storage.at(output.tensor.storage)];
    layout.offsets.emplace_back(group.place + output.tensor.offset - group.range.begin);
  }
  return layout;
}

SurfaceLayout lay_out_gradients(const std::vector<SurfaceTensor>& gradients) {
  SurfaceLayout layout;
  for (const SurfaceTensor& gradient : gradients) {
    if (gradient.kind != Kind::kArena) {
      layout.offsets.emplace_back();
      continue;
    }
    layout.offsets.emplace_back(layout.bytes);
    layout.bytes = align(layout.bytes + span_bytes(gradient.tensor));
  }
  return layout;
}

void check_frames(const std::vector<Surface>& surfaces) {
  std::set<std::pair<int, int>> branches;
  for (const Surface& surface : surfaces) {
    if (branches.emplace(surface.frame, surface.branch).second) continue;
    refuse("L02", fmt::format("frame {}", surface.frame),
           fmt::format("branch {} twice", surface.branch), "each branch once");
  }
  std::vector<std::vector<const Surface*>> frames;
  std::map<int, std::size_t> index;
  for (const Surface& surface : surfaces) {
    const auto [entry, is_new] = index.emplace(surface.frame, frames.size());
    if (is_new) frames.emplace_back();
    frames[entry->second].push_back(&surface);
  }
  for (const auto& frame : frames)
    for (std::size_t i = 1; i < frame.size(); ++i) check_pair(*frame[0], *frame[i]);
}

}  // namespace slotgraph

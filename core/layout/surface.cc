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
  throw Error({rule, std::move(where), std::move(found), std::move(expected),
               "branches of a family must have the same interface"});
}

const char* name_of(Kind kind) {
  return kind == Kind::kNone ? "no tensor" : kind == Kind::kArena ? "a tensor" : "module state";
}

// The position of the first tensor of each tensor's storage; -1 for what has none.
std::vector<int> alias_topology(const std::vector<SurfaceTensor>& tensors) {
  std::map<int, int> first;
  std::vector<int> topology;
  for (int i = 0; i < static_cast<int>(tensors.size()); ++i) {
    if (tensors[i].kind == Kind::kNone) {
      topology.push_back(-1);
    } else {
      topology.push_back(first.emplace(tensors[i].tensor.storage, i).first->second);
    }
  }
  return topology;
}

void check_pair(const Surface& first, const Surface& other) {
  const std::string where = fmt::format("family {}, branch {}", other.family, other.branch);
  if (first.tensors.size() != other.tensors.size()) {
    refuse("L03", where, fmt::format("{} tensors", other.tensors.size()),
           fmt::format("{}, as branch {}", first.tensors.size(), first.branch));
  }
  const auto mine = alias_topology(first.tensors), theirs = alias_topology(other.tensors);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const bool comparable = mine[i] >= 0 && theirs[i] >= 0;
    if (!comparable || mine[i] == theirs[i]) continue;
    refuse("L04", fmt::format("{}, tensor {}", where, i),
           fmt::format("the storage of tensor {}", theirs[i]),
           fmt::format("that of tensor {}, as in branch {}", mine[i], first.branch));
  }
  for (std::size_t i = 0; i < mine.size(); ++i) {
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

void check_families(const std::vector<Surface>& surfaces) {
  std::set<std::pair<int, int>> branches;
  for (const Surface& surface : surfaces) {
    if (branches.emplace(surface.family, surface.branch).second) continue;
    refuse("L02", fmt::format("family {}", surface.family),
           fmt::format("branch {} twice", surface.branch), "each branch once");
  }
  std::vector<std::vector<const Surface*>> families;
  std::map<int, std::size_t> index;
  for (const Surface& surface : surfaces) {
    const auto [entry, is_new] = index.emplace(surface.family, families.size());
    if (is_new) families.emplace_back();
    families[entry->second].push_back(&surface);
  }
  for (const auto& family : families)
    for (std::size_t i = 1; i < family.size(); ++i) check_pair(*family[0], *family[i]);
}

}  // namespace slotgraph

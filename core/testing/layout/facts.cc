#include "core/testing/layout/facts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace slotgraph::testing {
namespace {

// Extends `end` over all elements of the dimensions from `dimension` on.
void visit(const TensorSpec& tensor, std::size_t dimension, std::int64_t at, std::int64_t& end) {
  if (dimension == tensor.sizes.size()) {
    end = std::max(end, at + tensor.item_bytes);
    return;
  }
  for (std::int64_t i = 0; i < tensor.sizes[dimension]; ++i)
    visit(tensor, dimension + 1, at + i * tensor.strides[dimension] * tensor.item_bytes, end);
}

Piece piece_of(std::vector<int> members, const std::vector<const TensorSpec*>& tensors) {
  Piece piece{.origin = hull(*tensors[0]).begin, .end = 0, .members = std::move(members)};
  std::int64_t item = 1;
  for (const TensorSpec* tensor : tensors) {
    const Hull bytes = hull(*tensor);
    piece.origin = std::min(piece.origin, bytes.begin);
    piece.end = std::max(piece.end, bytes.end);
    item = std::max<std::int64_t>(item, tensor->item_bytes);
  }
  while (piece.origin % item != 0) --piece.origin;
  return piece;
}

struct Edge {
  Home home;
  Hull hull;
  int storage = 0;
  int version = 0;
};

std::vector<Edge> edges_of(const BranchTensors& branch) {
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < branch.inputs.size(); ++i)
    edges.push_back({{false, static_cast<int>(i)},
                     hull(branch.inputs[i]),
                     branch.inputs[i].storage,
                     branch.input_versions[i]});
  for (std::size_t i = 0; i < branch.outputs.size(); ++i) {
    if (branch.outputs[i].kind == SurfaceTensor::Kind::kNone) continue;
    const TensorSpec& tensor = branch.outputs[i].tensor;
    edges.push_back(
        {{true, static_cast<int>(i)}, hull(tensor), tensor.storage, branch.output_versions[i]});
  }
  return edges;
}

// The one boundary that a saved tensor is taken for: the first in this rank.
const Edge* observed(const SavedTensor& saved, const std::vector<Edge>& edges) {
  const auto rank = [&](const Edge& edge) {
    return std::tuple(edge.version != saved.version, edge.hull.bytes(), edge.home.is_output,
                      edge.home.index, -edge.hull.begin);
  };
  const Edge* best = nullptr;
  for (const Edge& edge : edges) {
    if (edge.storage != saved.tensor.storage || !covers(edge.hull, hull(saved.tensor))) continue;
    if (best == nullptr || rank(edge) < rank(*best)) best = &edge;
  }
  return best;
}

// A home that one member was seen in and that covers the whole cluster.
std::optional<Home> home_of(const std::vector<int>& members, const BranchTensors& branch,
                            const std::vector<Edge>& edges) {
  for (int member : members) {
    const Edge* edge = observed(branch.saved[member], edges);
    if (edge == nullptr || edge->version != branch.saved[member].version) continue;
    if (!edge->home.is_output && edge->home.index != 0) continue;
    if (std::ranges::all_of(members, [&](int other) {
          return covers(edge->hull, hull(branch.saved[other].tensor));
        }))
      return edge->home;
  }
  return std::nullopt;
}

// For every saved tensor the lowest number that it shares bytes with, through others or not.
std::vector<int> linked_saves(const std::vector<SavedTensor>& saved) {
  std::vector<int> link(saved.size());
  std::iota(link.begin(), link.end(), 0);
  std::map<std::pair<int, int>, std::vector<int>> painted;  // byte -> a saved tensor, or -1
  for (int i = 0; i < static_cast<int>(saved.size()); ++i) {
    if (!saved[i].internal) continue;
    auto& bytes = painted[{saved[i].tensor.storage, saved[i].version}];
    const Hull range = hull(saved[i].tensor);
    if (std::ssize(bytes) < range.end) bytes.resize(range.end, -1);
    for (std::int64_t at = range.begin; at < range.end; ++at) {
      const int other = std::exchange(bytes[at], i);
      if (other < 0) continue;
      const int from = std::max(link[i], link[other]), to = std::min(link[i], link[other]);
      if (from != to) std::ranges::replace(link, from, to);
    }
  }
  return link;
}

}  // namespace

Hull hull(const TensorSpec& tensor) {
  Hull result{tensor.offset, tensor.offset};
  visit(tensor, 0, tensor.offset, result.end);
  return result;
}

bool covers(const Hull& outer, const Hull& inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

std::int64_t pieces_of_256(std::int64_t bytes) {
  return bytes % 256 == 0 ? bytes : bytes + 256 - bytes % 256;
}

std::vector<Piece> output_pieces(const std::vector<SurfaceTensor>& outputs) {
  std::vector<Piece> pieces;
  std::vector<bool> done(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (done[i] || outputs[i].kind != SurfaceTensor::Kind::kArena) continue;
    std::vector<int> members;
    std::vector<const TensorSpec*> tensors;
    for (std::size_t j = i; j < outputs.size(); ++j) {
      if (outputs[j].kind != SurfaceTensor::Kind::kArena ||
          outputs[j].tensor.storage != outputs[i].tensor.storage)
        continue;
      done[j] = true;
      members.push_back(static_cast<int>(j));
      tensors.push_back(&outputs[j].tensor);
    }
    pieces.push_back(piece_of(std::move(members), tensors));
  }
  return pieces;
}

std::vector<Cluster> saved_clusters(const BranchTensors& branch) {
  const std::vector<Edge> edges = edges_of(branch);
  const std::vector<int> link = linked_saves(branch.saved);
  std::map<int, std::vector<int>> members;
  for (int i = 0; i < static_cast<int>(link.size()); ++i)
    if (branch.saved[i].internal && !hull(branch.saved[i].tensor).empty())
      members[link[i]].push_back(i);
  std::vector<Cluster> clusters;
  for (const auto& [first, saves] : members) {
    std::vector<const TensorSpec*> tensors;
    for (int save : saves) tensors.push_back(&branch.saved[save].tensor);
    clusters.push_back({piece_of(saves, tensors), home_of(saves, branch, edges)});
  }
  return clusters;
}

}  // namespace slotgraph::testing

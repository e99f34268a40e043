#include "core/testing/layout/branch_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace slotgraph::testing {
namespace {

using Kind = SurfaceTensor::Kind;
using Region = SavedPlace::Region;

void extend(std::map<std::pair<bool, int>, Hull>& hulls, std::pair<bool, int> owner,
            const TensorSpec& tensor, std::int64_t place) {
  const Hull range{place, place + hull(tensor).bytes()};
  if (range.empty()) return;
  Hull& whole = hulls.emplace(owner, range).first->second;
  whole.begin = std::min(whole.begin, range.begin);
  whole.end = std::max(whole.end, range.end);
}

}  // namespace

BranchChecker::BranchChecker(const BranchTensors& branch, const BranchFacts& facts,
                             const BranchLayout& layout, int number,
                             std::vector<std::string>& found)
    : branch_(branch),
      layout_(layout),
      number_(number),
      found_(found),
      pieces_(facts.pieces),
      clusters_(facts.clusters) {}

void BranchChecker::report(const char* tag, const std::string& text) {
  found_.push_back(fmt::format("{}: branch {}, {}", tag, number_, text));
}

void BranchChecker::check(std::int64_t saved_arena_bytes, std::int64_t gradient_arena_bytes) {
  if (!has_shape()) return;
  const bool outputs = has_places(branch_.outputs, layout_.outputs, "output");
  const bool gradients = has_places(branch_.user_gradients, layout_.user_gradients, "gradient");
  const bool saved = has_saved_places();
  if (outputs) check_outputs();
  if (gradients) check_gradients(gradient_arena_bytes);
  if (!outputs || !saved) return;
  check_saved();
  check_overlap(saved_arena_bytes);
}

bool BranchChecker::has_shape() {
  const bool same = layout_.outputs.offsets.size() == branch_.outputs.size() &&
                    layout_.saved.places.size() == branch_.saved.size() &&
                    layout_.user_gradients.offsets.size() == branch_.user_gradients.size();
  if (!same) report("shape", "another number of tensors");
  return same;
}

bool BranchChecker::has_places(const std::vector<SurfaceTensor>& tensors,
                               const SurfaceLayout& layout, const char* what) {
  bool right = true;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (layout.offsets[i].has_value() == (tensors[i].kind == Kind::kArena)) continue;
    report("place",
           fmt::format("{} {} {} a place", what, i, layout.offsets[i] ? "has" : "is without"));
    right = false;
  }
  return right;
}

bool BranchChecker::has_saved_places() {
  bool right = true;
  for (std::size_t i = 0; i < branch_.saved.size(); ++i) {
    const bool needs = branch_.saved[i].internal && !hull(branch_.saved[i].tensor).empty();
    if (layout_.saved.places[i].has_value() == needs) continue;
    report("place", fmt::format("saved {} {} a place", i, needs ? "is without" : "has"));
    right = false;
  }
  return right;
}

std::int64_t BranchChecker::base_of(const Piece& piece,
                                    const std::vector<const TensorSpec*>& tensors,
                                    const std::vector<std::int64_t>& places, const char* what) {
  const std::int64_t base = places[0] - (tensors[0]->offset - piece.origin);
  for (std::size_t i = 1; i < places.size(); ++i) {
    const std::int64_t expected = base + tensors[i]->offset - piece.origin;
    if (places[i] != expected)
      report("alias",
             fmt::format("{} {} at {} instead of {}", what, piece.members[i], places[i], expected));
  }
  if (base % kPieceAlignment != 0)
    report("alignment",
           fmt::format("the piece of {} {} begins at {}", what, piece.members[0], base));
  return base;
}

void BranchChecker::check_view(const TensorSpec& tensor, std::int64_t place, const Hull& region,
                               const char* what, std::size_t number) {
  const std::int64_t bytes = hull(tensor).bytes();
  if (!covers(region, {place, place + bytes}))
    report("bounds", fmt::format("{} {} at {} with {} bytes is not in [{}, {})", what, number,
                                 place, bytes, region.begin, region.end));
  if (place % tensor.item_bytes != 0)
    report("alignment",
           fmt::format("{} {} with items of {} at {}", what, number, tensor.item_bytes, place));
}

void BranchChecker::check_outputs() {
  std::int64_t next = 0;
  for (const Piece& piece : pieces_) {
    std::vector<const TensorSpec*> tensors;
    std::vector<std::int64_t> places;
    for (int i : piece.members) {
      tensors.push_back(&branch_.outputs[i].tensor);
      places.push_back(*layout_.outputs.offsets[i]);
      check_view(*tensors.back(), places.back(), {0, layout_.outputs.bytes}, "output", i);
    }
    const std::int64_t base = base_of(piece, tensors, places, "output");
    if (base != next)
      report("address", fmt::format("the piece of output {} begins at {} instead of {}",
                                    piece.members[0], base, next));
    next += pieces_of_256(piece.bytes());
  }
  if (layout_.outputs.bytes != next)
    report("size", fmt::format("outputs have {} bytes and need {}", layout_.outputs.bytes, next));
}

void BranchChecker::check_gradients(std::int64_t arena_bytes) {
  std::int64_t next = 0;
  for (std::size_t i = 0; i < branch_.user_gradients.size(); ++i) {
    if (branch_.user_gradients[i].kind != Kind::kArena) continue;
    const TensorSpec& tensor = branch_.user_gradients[i].tensor;
    const std::int64_t place = *layout_.user_gradients.offsets[i];
    check_view(tensor, place, {0, std::min(layout_.user_gradients.bytes, arena_bytes)}, "gradient",
               i);
    if (place % kPieceAlignment != 0)
      report("alignment", fmt::format("gradient {} begins at {}", i, place));
    if (place != next)
      report("address", fmt::format("gradient {} lies at {} instead of {}", i, place, next));
    next += pieces_of_256(hull(tensor).bytes());
  }
  if (layout_.user_gradients.bytes != next)
    report("size",
           fmt::format("gradients have {} bytes and need {}", layout_.user_gradients.bytes, next));
}

void BranchChecker::check_saved() {
  check_components();
  check_homes();
  check_spill();
}

void BranchChecker::check_components() {
  std::map<int, std::size_t> cluster_of;
  for (std::size_t i = 0; i < clusters_.size(); ++i) {
    const int component = layout_.saved.places[clusters_[i].piece.members[0]]->component;
    if (!cluster_of.emplace(component, i).second)
      report("alias", fmt::format("component {} is of two clusters", component));
    for (int save : clusters_[i].piece.members)
      if (layout_.saved.places[save]->component != component)
        report("alias", fmt::format("saved {} is not in its cluster's component", save));
  }
}

void BranchChecker::check_homes() {
  for (const Cluster& cluster : clusters_) {
    for (int save : cluster.piece.members) {
      const SavedPlace& place = *layout_.saved.places[save];
      const bool staged = cluster.home && !cluster.home->is_output;
      if (place.is_boundary != cluster.home.has_value())
        report("boundary", fmt::format("saved {} is {}backed", save, cluster.home ? "not " : ""));
      if ((place.region == Region::kStaging) != staged)
        report("boundary", fmt::format("saved {} lies in the wrong region", save));
      else if (cluster.home)
        check_in_home(cluster, save);
    }
  }
}

void BranchChecker::check_in_home(const Cluster& cluster, int save) {
  const TensorSpec& tensor = branch_.saved[save].tensor;
  const bool output = cluster.home->is_output;
  const TensorSpec& home = output ? branch_.outputs[cluster.home->index].tensor : branch_.inputs[0];
  const std::int64_t home_place =
      output ? *layout_.outputs.offsets[cluster.home->index] : home.offset;
  const std::int64_t place = layout_.saved.places[save]->offset;
  const std::int64_t expected = home_place + tensor.offset - home.offset;
  if (place != expected)
    report("alias", fmt::format("saved {} at {} instead of {} in its {}", save, place, expected,
                                output ? "output" : "staging buffer"));
  check_view(tensor, place, {home_place, home_place + hull(home).bytes()}, "saved", save);
}

void BranchChecker::check_spill() {
  std::vector<std::pair<std::int64_t, std::int64_t>> spilled;  // base, bytes
  std::int64_t need = 0;
  for (const Cluster& cluster : clusters_) {
    if (cluster.home) continue;
    std::vector<const TensorSpec*> tensors;
    std::vector<std::int64_t> places;
    for (int save : cluster.piece.members) {
      tensors.push_back(&branch_.saved[save].tensor);
      places.push_back(layout_.saved.places[save]->offset);
      check_view(*tensors.back(), places.back(), {layout_.outputs.bytes, layout_.need()}, "saved",
                 save);
    }
    spilled.emplace_back(base_of(cluster.piece, tensors, places, "saved"), cluster.piece.bytes());
    need += pieces_of_256(cluster.piece.bytes());
  }
  if (layout_.saved.spill_bytes != need)
    report("size", fmt::format("spill has {} bytes and needs {}", layout_.saved.spill_bytes, need));
  check_spill_order(std::move(spilled));
}

void BranchChecker::check_spill_order(std::vector<std::pair<std::int64_t, std::int64_t>> spilled) {
  std::ranges::sort(spilled);
  std::int64_t next = layout_.outputs.bytes;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  for (const auto& [base, bytes] : spilled) {
    if (base != next) report("address", fmt::format("spill at {} instead of {}", base, next));
    if (bytes > last) report("address", fmt::format("spill at {} is not the largest left", base));
    next += pieces_of_256(bytes);
    last = bytes;
  }
}

int BranchChecker::piece_of_output(int output) const {
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (std::ranges::count(pieces_[i].members, output) > 0) return static_cast<int>(i);
  return -1;
}

std::map<BranchChecker::Owner, Hull> BranchChecker::owners() const {
  std::map<Owner, Hull> hulls;
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    for (int output : pieces_[i].members)
      extend(hulls, {false, static_cast<int>(i)}, branch_.outputs[output].tensor,
             *layout_.outputs.offsets[output]);
  for (std::size_t i = 0; i < clusters_.size(); ++i) {
    const auto& [piece, home] = clusters_[i];
    const bool in_output = home && home->is_output;
    const Owner owner =
        in_output ? Owner{false, piece_of_output(home->index)} : Owner{true, static_cast<int>(i)};
    for (int save : piece.members)
      if (layout_.saved.places[save]->region == Region::kArena)
        extend(hulls, owner, branch_.saved[save].tensor, layout_.saved.places[save]->offset);
  }
  return hulls;
}

void BranchChecker::check_overlap(std::int64_t arena_bytes) {
  std::vector<const Owner*> painted(arena_bytes, nullptr);
  const std::map<Owner, Hull> all = owners();
  for (const auto& [owner, range] : all) {
    if (range.begin < 0 || range.end > arena_bytes)
      report("bounds", fmt::format("[{}, {}) is not in the arena's {} bytes", range.begin,
                                   range.end, arena_bytes));
    bool clear = true;
    for (std::int64_t at = std::max<std::int64_t>(range.begin, 0);
         at < std::min(range.end, arena_bytes); ++at) {
      clear = clear && painted[at] == nullptr;
      painted[at] = &owner;
    }
    if (!clear)
      report("overlap", fmt::format("{} {} lies on another", owner.first ? "cluster" : "storage",
                                    owner.second));
  }
}

}  // namespace slotgraph::testing

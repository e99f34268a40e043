// The part of the layout oracle that looks at one branch alone; tags as in layout_checker.h.
#ifndef CORE_TESTING_LAYOUT_BRANCH_CHECKER_H_
#define CORE_TESTING_LAYOUT_BRANCH_CHECKER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/layout/arena_layout.h"
#include "core/testing/layout/facts.h"

namespace slotgraph::testing {

struct BranchFacts {
  std::vector<Piece> pieces;  // of outputs
  std::vector<Cluster> clusters;
};

class BranchChecker {
 public:
  // Keeps all references. `number` stands in the violations, which are appended to `found`.
  BranchChecker(const BranchTensors& branch, const BranchFacts& facts, const BranchLayout& layout,
                int number, std::vector<std::string>& found);

  // Arena sizes: what the colours of the branch have.
  void check(std::int64_t saved_arena_bytes, std::int64_t gradient_arena_bytes);

 private:
  using Owner = std::pair<bool, int>;  // outputs: {false, piece}; spill: {true, cluster}

  void report(const char* tag, const std::string& text);
  bool has_shape();
  bool has_places(const std::vector<SurfaceTensor>& tensors, const SurfaceLayout& layout,
                  const char* what);
  bool has_saved_places();

  void check_outputs();
  void check_gradients(std::int64_t arena_bytes);
  void check_saved();
  void check_homes();
  void check_spill();
  void check_spill_order(std::vector<std::pair<std::int64_t, std::int64_t>> spilled);
  void check_components();
  void check_in_home(const Cluster& cluster, int save);
  // Of a piece whose members lie at `places`: where it begins. Reports members out of place.
  std::int64_t base_of(const Piece& piece, const std::vector<const TensorSpec*>& tensors,
                       const std::vector<std::int64_t>& places, const char* what);
  // A view at `place` of the region.
  void check_view(const TensorSpec& tensor, std::int64_t place, const Hull& region,
                  const char* what, std::size_t number);
  void check_overlap(std::int64_t arena_bytes);
  std::map<Owner, Hull> owners() const;
  int piece_of_output(int output) const;

  const BranchTensors& branch_;
  const BranchLayout& layout_;
  const int number_;
  std::vector<std::string>& found_;
  const std::vector<Piece>& pieces_;
  const std::vector<Cluster>& clusters_;
};

}  // namespace slotgraph::testing

#endif  // CORE_TESTING_LAYOUT_BRANCH_CHECKER_H_

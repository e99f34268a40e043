// Where the survivors of a frame lie inside its arena: the same offsets in every variant.
#ifndef CORE_LAYOUT_FRAME_LAYOUT_H_
#define CORE_LAYOUT_FRAME_LAYOUT_H_

#include <compare>
#include <cstddef>
#include <map>
#include <vector>

namespace slotgraph {

// What a survivor is for its frame. The order of roles is the order in the arena.
struct Role {
  enum class Kind { kOutput, kInput, kRest, kGradient };
  Kind kind = Kind::kRest;
  int position = 0;  // output or input position; for the rest the order of birth
  auto operator<=>(const Role&) const = default;
};

struct Survivor {
  Role role;
  std::size_t bytes = 0;
};

inline constexpr std::size_t kArenaAlignment = 512;  // bytes: the caching allocator's own granule

struct FrameLayout {
  std::map<Role, std::size_t> offsets;  // bytes from the arena's start, aligned
  std::size_t bytes = 0;                // of the arena that holds the frame
};

// Prefix sums, in role order, of the maxima over the variants. A role that one variant lacks keeps
// its place in all, so equal roles have equal offsets, and role i does not depend on roles after
// it.
FrameLayout lay_out_frame(const std::vector<std::vector<Survivor>>& survivors_of_variant);

}  // namespace slotgraph

#endif  // CORE_LAYOUT_FRAME_LAYOUT_H_

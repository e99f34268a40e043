#include "core/layout/frame_layout.h"

#include <algorithm>

namespace slotgraph {

FrameLayout lay_out_frame(const std::vector<std::vector<Survivor>>& survivors_of_variant) {
  std::map<Role, std::size_t> largest;
  for (const auto& survivors : survivors_of_variant) {
    for (const Survivor& survivor : survivors) {
      std::size_t& bytes = largest[survivor.role];
      bytes = std::max(bytes, survivor.bytes);
    }
  }
  FrameLayout layout;
  for (const auto& [role, bytes] : largest) {
    layout.offsets[role] = layout.bytes;
    layout.bytes += (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  }
  return layout;
}

}  // namespace slotgraph

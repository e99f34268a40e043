// The sharing modes: one row each. A mode's capture is modes/NAME.cc, its factory is in
// modes/modes.h.
#ifndef CORE_GRAPH_MODE_H_
#define CORE_GRAPH_MODE_H_

#include <array>
#include <string>
#include <vector>

namespace slotgraph {

enum class Mode {
  kEager,       // no graphs: the truth that the others are compared with
  kNative,      // graphs, one private pool for each branch: right in any order
  kPerVariant,  // as PyTorch does it: one private pool for each variant, right in base order only
  kPlacement,   // slot graphs: survivors are born at planned addresses of shared arenas
  kArena,       // slot graphs by copying: what is saved or returned is copied to shared arenas
  kCheckpoint,  // the same, captured in lockstep, with the pool set back between variants
};

struct ModeTraits {
  Mode mode;
  const char* name;
  bool is_slot;  // branches share memory by the plan
  bool copies;   // what survives is copied, so what no saved-tensor hook sees is refused (K09)
};

inline constexpr std::array<ModeTraits, 6> kModes{{
    {Mode::kEager, "eager", false, false},
    {Mode::kNative, "native", false, false},
    {Mode::kPerVariant, "per_variant", false, false},
    {Mode::kPlacement, "placement", true, false},
    {Mode::kArena, "arena", true, true},
    {Mode::kCheckpoint, "checkpoint", true, true},
}};

const ModeTraits& traits(Mode mode);
inline bool is_slot_mode(Mode mode) { return traits(mode).is_slot; }
inline std::string to_string(Mode mode) { return traits(mode).name; }

// Throws Error MO1 unless a mode has that name.
Mode mode_from_name(const std::string& name);

// In the order of the table.
std::vector<Mode> slot_modes();
// These, and the one that graphs of one branch each are compared with: kNative.
std::vector<Mode> graph_modes();
std::vector<std::string> names_of(const std::vector<Mode>& modes);

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODE_H_

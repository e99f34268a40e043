#include "core/graph/mode.h"

#include <fmt/ranges.h>

#include "core/error.h"

namespace slotgraph {

const ModeTraits& traits(Mode mode) {
  for (const ModeTraits& each : kModes) {
    if (each.mode == mode) return each;
  }
  throw Error(Error::kInternal, {"MO1", "mode", fmt::to_string(static_cast<int>(mode)),
                                 "a row of core/graph/mode.h", "add one"});
}

Mode mode_from_name(const std::string& name) {
  std::vector<std::string> names;
  for (const ModeTraits& each : kModes) {
    if (each.name == name) return each.mode;
    names.emplace_back(each.name);
  }
  throw Error(Error::kInput, {"MO1", "mode", "`" + name + "`",
                              fmt::format("one of {}", fmt::join(names, ", ")), ""});
}

std::vector<Mode> slot_modes() {
  std::vector<Mode> modes;
  for (const ModeTraits& each : kModes)
    if (each.is_slot) modes.push_back(each.mode);
  return modes;
}

std::vector<Mode> graph_modes() {
  std::vector<Mode> modes = slot_modes();
  modes.insert(modes.begin(), Mode::kNative);
  return modes;
}

std::vector<std::string> names_of(const std::vector<Mode>& modes) {
  std::vector<std::string> names;
  for (const Mode mode : modes) names.push_back(to_string(mode));
  return names;
}

}  // namespace slotgraph

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/models/blocks.h"
#include "core/models/zoo.h"

namespace slotgraph {
namespace {

std::vector<BlockKind> built_in_blocks() {
  std::vector<BlockKind> kinds = plain_blocks();
  const std::vector<BlockKind> more = alias_blocks();
  kinds.insert(kinds.end(), more.begin(), more.end());
  return kinds;
}

std::vector<BlockKind>& registry() {
  static std::vector<BlockKind>& kinds = *new std::vector<BlockKind>(built_in_blocks());
  return kinds;
}

}  // namespace

const std::vector<BlockKind>& blocks() { return registry(); }

std::vector<std::string> block_names() {
  std::vector<std::string> names;
  for (const BlockKind& kind : blocks()) names.push_back(kind.name);
  return names;
}

bool register_block(BlockKind kind) {
  const auto same = [&](const BlockKind& other) { return other.name == kind.name; };
  if (std::any_of(registry().begin(), registry().end(), same)) {
    throw Error(Error::kContract, {"M01", "register_block", "a second block named " + kind.name,
                                   "unique names", "choose another name"});
  }
  registry().push_back(std::move(kind));
  return true;
}

const BlockKind& find_block(const std::string& name) {
  std::vector<std::string> names;
  for (const BlockKind& kind : registry()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw Error(Error::kInput,
              {"M02", "block", name, fmt::format("one of {}", fmt::join(names, ", ")),
               "correct the name or register the block"});
}

}  // namespace slotgraph

// The commands of the stateful test. Each does the same to the model and to the real allocator, on
// one of two threads, and compares the reply and everything that can be seen afterwards.
#ifndef PROPERTIES_ALLOCATOR_COMMANDS_H_
#define PROPERTIES_ALLOCATOR_COMMANDS_H_

#include <rapidcheck.h>
#include <rapidcheck/state.h>

#include <map>
#include <memory>
#include <string>

#include "properties/allocator/model.h"
#include "properties/allocator/real.h"

namespace slotgraph::allocator {

using Command = rc::state::Command<Model, Real>;

// One command that is possible in the model's state. What a command names (a block, a checkpoint)
// it names by its number among those that there are, so that shorter sequences keep their meaning.
rc::Gen<std::shared_ptr<const Command>> command(const Model& model);

// What has run so far, in all sequences.
struct Census {
  std::map<std::string, std::uint64_t> commands;
  std::map<std::string, std::uint64_t> situations;
};
const Census& census();

}  // namespace slotgraph::allocator

#endif  // PROPERTIES_ALLOCATOR_COMMANDS_H_

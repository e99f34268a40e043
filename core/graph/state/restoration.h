// Undoing what a call has done to its surroundings.
#ifndef CORE_GRAPH_STATE_RESTORATION_H_
#define CORE_GRAPH_STATE_RESTORATION_H_

#include <exception>
#include <string>

#include "core/fatal.h"
#include "core/trace/steps.h"

namespace slotgraph {

// Runs `undo`, which may be run again. A device reports the failure of earlier work with any later
// call, so one failure may not be this one's: it is tried twice. Then the process ends: going on
// with other state would change results without notice. `what` completes "... cannot be restored".
template <typename Undo>
void restore_or_end(const char* what, const Undo& undo) noexcept {
  const trace::PhaseScope phase(trace::Phase::restore_state);
  for (const bool last : {false, true}) {
    try {
      undo();
      return;
    } catch (const std::exception& error) {
      if (last) fatal(std::string(what) + " cannot be restored: " + error.what());
    }
  }
}

}  // namespace slotgraph

#endif  // CORE_GRAPH_STATE_RESTORATION_H_

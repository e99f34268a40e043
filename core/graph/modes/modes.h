// The captures of the sharing modes, one file each.
#ifndef CORE_GRAPH_MODES_MODES_H_
#define CORE_GRAPH_MODES_MODES_H_

#include <memory>

#include "core/graph/modes/request.h"

namespace slotgraph {

std::unique_ptr<CallableSet> make_eager(const CaptureRequest& request);
std::unique_ptr<CallableSet> make_native(const CaptureRequest& request);  // kPerVariant too
std::unique_ptr<CallableSet> make_placement(const CaptureRequest& request);
std::unique_ptr<CallableSet> make_arena(const CaptureRequest& request);
std::unique_ptr<CallableSet> make_checkpoint(const CaptureRequest& request);

// In the mode that the request's options name.
inline std::unique_ptr<CallableSet> make_set(const CaptureRequest& request) {
  switch (request.options.mode) {
    case Mode::kEager:
      return make_eager(request);
    case Mode::kNative:
    case Mode::kPerVariant:
      return make_native(request);
    case Mode::kPlacement:
      return make_placement(request);
    case Mode::kArena:
      return make_arena(request);
    case Mode::kCheckpoint:
      return make_checkpoint(request);
  }
  return nullptr;
}

}  // namespace slotgraph

#endif  // CORE_GRAPH_MODES_MODES_H_

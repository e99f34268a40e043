// Expandable segments are off while a call captures: a checkpoint of a pool that
// grows in place cannot be restored.
#ifndef CORE_GRAPH_STATE_ALLOCATOR_SETTINGS_H_
#define CORE_GRAPH_STATE_ALLOCATOR_SETTINGS_H_

#include <string>

namespace slotgraph {

// The settings with expandable segments off: every part of that key is replaced, the others stay as
// they are. Commas inside brackets separate nothing.
std::string without_expandable_segments(const std::string& settings);

// Reads the allocator itself, not the environment; the destructor sets the very string that was set
// before.
class AllocatorSettingsGuard {
 public:
  AllocatorSettingsGuard();
  ~AllocatorSettingsGuard();
  AllocatorSettingsGuard(const AllocatorSettingsGuard&) = delete;
  AllocatorSettingsGuard& operator=(const AllocatorSettingsGuard&) = delete;

 private:
  bool changed_ = false;
  std::string before_;
};

bool expandable_segments_on();

// Whether device memory comes from the native caching allocator: not if the process runs with
// another backend, or with one that caches nothing, as the environment or a call of enable() says.
bool native_caching_on();

}  // namespace slotgraph

#endif  // CORE_GRAPH_STATE_ALLOCATOR_SETTINGS_H_

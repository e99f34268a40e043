// The placing allocator, on which sharing mode `placement` stands: a CUDA allocator that delegates
// to the native one, watches what a branch allocates, and serves planned allocations at planned
// addresses.
//
// The allocator object and its one trace tracker live as long as the process, because storages keep
// their allocator's address and trackers cannot be detached; outside a Session both are idle.
#ifndef CORE_MEMORY_PLACING_ALLOCATOR_H_
#define CORE_MEMORY_PLACING_ALLOCATOR_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/device/device.h"
#include "core/memory/private_pool.h"

namespace slotgraph {

struct Allocation {
  std::size_t bytes = 0;  // as requested
  const void* address = nullptr;
  bool placed = false;
  bool alive = true;  // until its free is requested
};

// What one session allocated, in order of birth. Thread-safe: frees may come from any thread, long
// after the session.
class Recording {
 public:
  std::vector<Allocation> snapshot() const;
  // True if one of them lives at this address.
  bool owns(const void* address) const;

 private:
  friend class Session;
  friend class PlacingAllocator;
  std::size_t add(Allocation allocation);
  void mark_freed(std::size_t index);

  mutable std::mutex mutex_;
  std::vector<Allocation> allocations_;
};

// What to place: for each allocation of a branch, by order of birth, its size and, for survivors,
// its offset in the arena. An allocation of another size than planned is not placed.
struct PlacementPlan {
  struct Entry {
    std::size_t bytes = 0;
    std::optional<std::size_t> offset;
  };
  std::vector<Entry> entries;
  Arena arena;
};

// Installs the placing allocator for the calling thread; the destructor uninstalls it. One session
// at a time in the process: a second one throws Error G01. An allocation whose planned offset would
// leave the arena throws Error G02. It counts the non-empty allocate calls of this thread, during a
// capture only those on streams of the capture; raw_alloc is neither counted nor placed.
class Session {
 public:
  // Only records (warm-up).
  Session();
  // Records and places; `graph` is the open capture and must outlive the session.
  Session(const device::Graph& graph, PlacementPlan plan);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::shared_ptr<const Recording> recording() const { return recording_; }
  // Returns the recording of the session that is installed; null if there is none.
  static const Recording* active_recording();

 private:
  friend class PlacingAllocator;
  bool counts() const;

  const device::Graph* graph_ = nullptr;
  PlacementPlan plan_;
  std::shared_ptr<Recording> recording_ = std::make_shared<Recording>();
};

}  // namespace slotgraph

#endif  // CORE_MEMORY_PLACING_ALLOCATOR_H_

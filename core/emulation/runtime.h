// The state of the emulated runtime: one object for the process, one lock.
//
// Entry points (api_*.cc) are thin: they check arguments, then call this. Private to
// core/emulation.
#ifndef CORE_EMULATION_RUNTIME_H_
#define CORE_EMULATION_RUNTIME_H_

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/emulation/graph.h"
#include "core/emulation/memory.h"
#include "core/emulation/scheduler.h"
#include "core/trace/event_log.h"

namespace slotgraph::emulation {

struct Stream {
  int device = 0;
  bool blocking = true;  // waits for, and is waited for by, the legacy stream
  int priority = 0;
  TaskId tail = 0;              // newest task of this stream
  std::vector<TaskId> waits;    // event waits that the next task takes over
  std::vector<TaskId> orphans;  // legacy stream: the last tasks of destroyed blocking streams
  std::shared_ptr<Capture> capture;
  std::vector<Node*> terminals;  // while capturing: what the next node depends on
};

struct Event {
  bool timing = true;
  bool recorded = false;
  TaskId task = 0;                      // of the newest record
  std::shared_ptr<std::uint64_t> tick;  // of the newest record, once it has run
  std::weak_ptr<Capture> capture;       // the newest record was captured here
  bool captured = false;
  std::vector<Node*> terminals;  // what that record saw
};

// Per thread: current device, last error, capture mode for potentially unsafe calls, ordinal in the
// log.
struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  int ordinal = -1;
  bool in_host_function = false;
};
ThreadState& this_thread();

class Runtime {
 public:
  using Lock = std::unique_lock<std::mutex>;

  static Runtime& instance();  // never destroyed: streams outlive static destructors
  Lock lock() { return Lock(mutex_); }

  // Streams. Null and cudaStreamLegacy name the legacy stream of the current device.
  Stream* find_stream(cudaStream_t handle);
  Stream* create_stream(bool blocking, int priority);
  cudaError_t destroy_stream(Stream* stream);

  // Work. `submit` queues it, or adds a node if the stream captures.
  cudaError_t submit(Lock& lock, Stream* stream, Work work, cudaGraphNodeType type);
  cudaError_t record(Lock& lock, Stream* stream, Event* event);
  cudaError_t wait(Stream* stream, Event* event);
  cudaError_t launch(Lock& lock, Stream* stream, std::shared_ptr<const ExecutableGraph> graph);
  // Runs work until the task, or everything, is done. Returns the sticky error if one is set by
  // then.
  cudaError_t run_until(Lock& lock, const std::vector<TaskId>& tasks);
  cudaError_t run_all(Lock& lock);
  // With an adversarial seed, sometimes runs a little work that nobody waits for.
  void maybe_progress(Lock& lock, std::uint64_t one_in);
  // What a synchronisation of this stream waits for.
  std::vector<TaskId> last_tasks(Stream* stream);
  bool any_pending(const std::vector<TaskId>& tasks) const;

  // Captures.
  cudaError_t begin_capture(Stream* stream, cudaStreamCaptureMode mode);
  cudaError_t end_capture(Stream* stream, Graph** graph);
  // A graph by its handle, finished or still being captured; null if there is none.
  Graph* find_capturing_or_finished(cudaGraph_t handle);
  // The error of a call that is not allowed while someone captures in a mode that forbids it to
  // this thread, after invalidating those captures; cudaSuccess otherwise.
  cudaError_t check_unsafe_call();
  // The same for a call that would wait for every stream of the device.
  cudaError_t check_device_wait();
  // The error of using the legacy stream while a blocking stream of its device captures.
  cudaError_t check_legacy(const Stream* stream, bool invalidates = true);
  std::size_t captures() const { return captures_.size(); }  // open ones
  void invalidate(Capture& capture) { capture.invalidated = true; }

  DeviceMemory device_memory;
  PinnedMemory pinned_memory;
  Scheduler scheduler;
  std::array<std::uint64_t, trace::kCallCount> counts{};  // of each call
  trace::EventLog log;
  std::uint64_t sequence = 0;
  int threads = 0;
  int device_count = 1;
  cudaError_t sticky = cudaSuccess;
  // Live handles: a pointer that is not in here is refused, not dereferenced.
  std::map<const void*, std::unique_ptr<Event>> events;
  std::map<const void*, std::unique_ptr<Graph>> graphs;
  std::map<const void*, std::shared_ptr<const ExecutableGraph>> executables;
  std::map<const void*, std::shared_ptr<UserObject>> user_objects;
  std::map<const void*, Node*> nodes;
  // What the entry point has to let go of once it has released the lock: user objects run host
  // code.
  std::vector<std::shared_ptr<const void>> discarded;

 private:
  Runtime() = default;
  void step(Lock& lock);
  void run(const Work& work);
  std::vector<TaskId> dependencies(Stream* stream);
  void leave_capture(const std::shared_ptr<Capture>& capture);
  void discard(std::unique_ptr<Graph> graph);
  Stream* legacy_stream(int device);

  std::mutex mutex_;
  std::condition_variable idle_;
  bool running_ = false;  // one task runs at a time, with the lock released
  std::map<const void*, std::unique_ptr<Stream>> streams_;
  std::map<int, std::unique_ptr<Stream>> legacy_;
  std::vector<std::shared_ptr<Capture>> captures_;
  unsigned long long last_capture_ = 0;
};

}  // namespace slotgraph::emulation

#endif  // CORE_EMULATION_RUNTIME_H_

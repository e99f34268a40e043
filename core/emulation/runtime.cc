#include "core/emulation/runtime.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace slotgraph::emulation {
namespace {

// A real launch queue is finite: beyond this the oldest work runs while the caller waits.
constexpr std::size_t kQueueLimit = 4096;

}  // namespace

ThreadState& this_thread() {
  thread_local ThreadState state;
  return state;
}

Runtime& Runtime::instance() {
  static Runtime* const runtime = new Runtime();
  return *runtime;
}

Stream* Runtime::legacy_stream(int device) {
  auto& legacy = legacy_[device];
  if (!legacy) {
    legacy = std::make_unique<Stream>();
    legacy->device = device;
  }
  return legacy.get();
}

Stream* Runtime::find_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return legacy_stream(this_thread().device);
  const auto it = streams_.find(handle);
  return it == streams_.end() ? nullptr : it->second.get();
}

Stream* Runtime::create_stream(bool blocking, int priority) {
  auto stream = std::make_unique<Stream>();
  stream->device = this_thread().device;
  stream->blocking = blocking;
  stream->priority = priority;
  Stream* const raw = stream.get();
  streams_[raw] = std::move(stream);
  return raw;
}

cudaError_t Runtime::destroy_stream(Stream* stream) {
  if (stream->capture) {
    invalidate(*stream->capture);
    stream->capture->streams.erase(stream);
  }
  for (const auto& capture : captures_) {
    if (capture->origin == stream) capture->origin = nullptr;
  }
  if (stream->blocking) {
    std::vector<TaskId>& orphans = legacy_stream(stream->device)->orphans;
    std::erase_if(orphans, [this](TaskId task) { return !scheduler.is_pending(task); });
    orphans.push_back(stream->tail);
    orphans.insert(orphans.end(), stream->waits.begin(), stream->waits.end());
  }
  streams_.erase(stream);
  std::erase_if(captures_, [this](const auto& capture) {
    if (!capture->streams.empty()) return false;
    discard(std::move(capture->graph));
    return true;
  });
  return cudaSuccess;
}

std::vector<TaskId> Runtime::last_tasks(Stream* stream) {
  std::vector<TaskId> result;
  const auto add = [&](const Stream& other) {
    result.push_back(other.tail);
    result.insert(result.end(), other.waits.begin(), other.waits.end());
    result.insert(result.end(), other.orphans.begin(), other.orphans.end());
  };
  add(*stream);
  if (stream != legacy_stream(stream->device)) return result;
  for (const auto& [handle, other] : streams_) {
    if (other->blocking && other->device == stream->device) add(*other);
  }
  return result;
}

// Every blocking stream waits for the legacy stream and the other way round.
std::vector<TaskId> Runtime::dependencies(Stream* stream) {
  std::vector<TaskId> result = last_tasks(stream);
  stream->waits.clear();
  stream->orphans.clear();
  const Stream* const legacy = legacy_stream(stream->device);
  if (stream->blocking && stream != legacy) {
    result.push_back(legacy->tail);
    result.insert(result.end(), legacy->waits.begin(), legacy->waits.end());
  }
  return result;
}

// Work on the legacy stream is an implicit dependency of every blocking stream, so it cannot run
// while one captures, in whatever mode.
cudaError_t Runtime::check_legacy(const Stream* stream, bool invalidates) {
  if (stream != legacy_stream(stream->device)) return cudaSuccess;
  cudaError_t result = cudaSuccess;
  for (const auto& capture : captures_) {
    const bool blocking = std::any_of(capture->streams.begin(), capture->streams.end(),
                                      [stream](const Stream* member) {
                                        return member->blocking && member->device == stream->device;
                                      });
    if (!blocking) continue;
    if (invalidates) invalidate(*capture);
    result = cudaErrorStreamCaptureImplicit;
  }
  return result;
}

cudaError_t Runtime::submit(Lock& lock, Stream* stream, Work work, cudaGraphNodeType type) {
  if (stream->capture) {
    if (stream->capture->invalidated) return cudaErrorStreamCaptureInvalidated;
    Node* const node = stream->capture->graph->add(std::move(work), type, stream->terminals);
    nodes[node] = node;
    stream->terminals = {node};
    return cudaSuccess;
  }
  if (const cudaError_t error = check_legacy(stream)) return error;
  stream->tail = scheduler.submit(std::move(work), dependencies(stream));
  while (scheduler.pending() > kQueueLimit && sticky == cudaSuccess) step(lock);
  maybe_progress(lock, 8);
  return cudaSuccess;
}

cudaError_t Runtime::record(Lock& lock, Stream* stream, Event* event) {
  if (stream->capture) {
    if (stream->capture->invalidated) return cudaErrorStreamCaptureInvalidated;
    event->recorded = true;
    event->captured = true;
    event->capture = stream->capture;
    event->terminals = stream->terminals;
    return cudaSuccess;
  }
  Work work;
  work.kind = Work::Kind::kTick;
  work.tick = std::make_shared<std::uint64_t>(0);
  const auto tick = work.tick;
  if (const cudaError_t error = submit(lock, stream, std::move(work), cudaGraphNodeTypeEventRecord))
    return error;
  event->recorded = true;
  event->captured = false;
  event->capture.reset();
  event->terminals.clear();
  event->task = stream->tail;
  event->tick = tick;
  return cudaSuccess;
}

cudaError_t Runtime::wait(Stream* stream, Event* event) {
  if (!event->recorded) return cudaSuccess;
  if (event->captured) {
    const auto capture = event->capture.lock();
    if (!capture || !capture->graph) {  // that capture has ended
      if (stream->capture) invalidate(*stream->capture);
      return cudaErrorInvalidValue;
    }
    if (capture->invalidated) return cudaErrorStreamCaptureInvalidated;
    const auto legacy = legacy_.find(stream->device);
    if (legacy != legacy_.end() && legacy->second.get() == stream) {
      invalidate(*capture);
      return cudaErrorStreamCaptureImplicit;
    }
    if (stream->capture && stream->capture != capture) {
      invalidate(*capture);
      invalidate(*stream->capture);
      return cudaErrorStreamCaptureMerge;
    }
    if (!stream->capture) {
      stream->capture = capture;
      stream->terminals.clear();
      capture->streams.insert(stream);
    }
    for (Node* terminal : event->terminals) {
      if (std::find(stream->terminals.begin(), stream->terminals.end(), terminal) ==
          stream->terminals.end()) {
        stream->terminals.push_back(terminal);
      }
    }
    return cudaSuccess;
  }
  if (stream->capture) {
    if (stream->capture->invalidated) return cudaErrorStreamCaptureInvalidated;
    invalidate(*stream->capture);
    return cudaErrorStreamCaptureIsolation;
  }
  if (scheduler.is_pending(event->task)) stream->waits.push_back(event->task);
  return cudaSuccess;
}

cudaError_t Runtime::launch(Lock& lock, Stream* stream,
                            std::shared_ptr<const ExecutableGraph> graph) {
  if (stream->capture) return cudaErrorNotSupported;  // child graphs
  if (const cudaError_t error = check_legacy(stream)) return error;
  Work marker;
  marker.keep_alive = graph;
  std::vector<TaskId> needed = dependencies(stream);
  needed.push_back(graph->newest_launch);
  const TaskId begin = scheduler.submit(marker, needed);
  std::vector<TaskId> steps;
  std::vector<TaskId> leaves{begin};
  for (const auto& step : graph->steps) {
    std::vector<TaskId> needs{begin};
    for (const std::size_t dependency : step.dependencies) needs.push_back(steps[dependency]);
    steps.push_back(scheduler.submit(step.work, needs));
    if (step.is_leaf) leaves.push_back(steps.back());
  }
  stream->tail = scheduler.submit(marker, leaves);
  graph->newest_launch = stream->tail;
  while (scheduler.pending() > kQueueLimit && sticky == cudaSuccess) step(lock);
  maybe_progress(lock, 4);
  return cudaSuccess;
}

void Runtime::run(const Work& work) {
  switch (work.kind) {
    case Work::Kind::kNothing:
    case Work::Kind::kTick:
      return;
    case Work::Kind::kHostFunction:
      this_thread().in_host_function = true;
      work.function(work.argument);
      this_thread().in_host_function = false;
      return;
    case Work::Kind::kCopy:
      std::memmove(work.destination, work.snapshot ? work.snapshot->data() : work.source,
                   work.bytes);
      return;
    case Work::Kind::kFill:
      std::memset(work.destination, work.byte, work.bytes);
      return;
  }
}

void Runtime::step(Lock& lock) {
  if (running_) {
    idle_.wait(lock);
    return;
  }
  running_ = true;
  Scheduler::Running task = scheduler.next();
  lock.unlock();
  run(task.work);
  lock.lock();
  running_ = false;
  if (task.work.tick) *task.work.tick = scheduler.finished() + 1;
  scheduler.finish(task.id);
  idle_.notify_all();
  // The last reference to a graph may go here: its user objects run host code.
  lock.unlock();
  task.work = {};
  lock.lock();
}

bool Runtime::any_pending(const std::vector<TaskId>& tasks) const {
  return std::any_of(tasks.begin(), tasks.end(),
                     [this](TaskId task) { return scheduler.is_pending(task); });
}

cudaError_t Runtime::run_until(Lock& lock, const std::vector<TaskId>& tasks) {
  while (sticky == cudaSuccess && any_pending(tasks)) step(lock);
  return sticky;
}

cudaError_t Runtime::run_all(Lock& lock) {
  while (sticky == cudaSuccess && scheduler.pending() > 0) step(lock);
  return sticky;
}

void Runtime::maybe_progress(Lock& lock, std::uint64_t one_in) {
  if (!scheduler.chance(one_in)) return;
  for (int i = 0; i < 4 && sticky == cudaSuccess && !running_ && scheduler.has_ready(); ++i)
    step(lock);
}

cudaError_t Runtime::begin_capture(Stream* stream, cudaStreamCaptureMode mode) {
  const auto legacy = legacy_.find(stream->device);
  if (legacy != legacy_.end() && legacy->second.get() == stream)
    return cudaErrorStreamCaptureUnsupported;
  if (stream->capture) return cudaErrorIllegalState;
  auto capture = std::make_shared<Capture>();
  capture->id = ++last_capture_;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = stream;
  capture->streams.insert(stream);
  captures_.push_back(capture);
  stream->capture = capture;
  stream->terminals.clear();
  return cudaSuccess;
}

void Runtime::leave_capture(const std::shared_ptr<Capture>& capture) {
  for (Stream* member : capture->streams) {
    member->capture.reset();
    member->terminals.clear();
  }
  std::erase(captures_, capture);
}

cudaError_t Runtime::end_capture(Stream* stream, Graph** graph) {
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != stream) {
    invalidate(*capture);
    return cudaErrorStreamCaptureUnmatched;
  }
  const bool wrong_thread = capture->mode != cudaStreamCaptureModeRelaxed &&
                            capture->thread != std::this_thread::get_id();
  const std::vector<Node*> joined = stream->terminals;
  leave_capture(capture);
  std::unique_ptr<Graph> captured = std::move(capture->graph);
  if (wrong_thread || capture->invalidated) {
    discard(std::move(captured));
    return wrong_thread ? cudaErrorStreamCaptureWrongThread : cudaErrorStreamCaptureInvalidated;
  }
  for (Node* leaf : captured->leaves()) {
    if (std::find(joined.begin(), joined.end(), leaf) == joined.end()) {
      discard(std::move(captured));
      return cudaErrorStreamCaptureUnjoined;
    }
  }
  *graph = captured.get();
  graphs[*graph] = std::move(captured);
  return cudaSuccess;
}

void Runtime::discard(std::unique_ptr<Graph> graph) {
  for (const auto& node : graph->nodes) nodes.erase(node.get());
  discarded.push_back(std::move(graph));
}

Graph* Runtime::find_capturing_or_finished(cudaGraph_t handle) {
  const auto it = graphs.find(handle);
  if (it != graphs.end()) return it->second.get();
  for (const auto& capture : captures_) {
    if (capture->graph.get() == reinterpret_cast<Graph*>(handle)) return capture->graph.get();
  }
  return nullptr;
}

cudaError_t Runtime::check_unsafe_call() {
  const cudaStreamCaptureMode mine = this_thread().mode;
  if (mine == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  cudaError_t result = cudaSuccess;
  for (const auto& capture : captures_) {
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    const bool own = capture->thread == std::this_thread::get_id();
    const bool forbidden = own || (mine == cudaStreamCaptureModeGlobal &&
                                   capture->mode == cudaStreamCaptureModeGlobal);
    if (!forbidden) continue;
    invalidate(*capture);
    result = cudaErrorStreamCaptureUnsupported;
  }
  return result;
}

cudaError_t Runtime::check_device_wait() {
  for (const auto& capture : captures_) invalidate(*capture);
  return captures_.empty() ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}

}  // namespace slotgraph::emulation

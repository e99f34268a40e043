// Streams, events and host functions.
#include "core/emulation/entry.h"

namespace slotgraph::emulation {
namespace {

using trace::Call;

cudaError_t create(Runtime& runtime, cudaStream_t* stream, unsigned int flags, int priority) {
  if (!stream || (flags != cudaStreamDefault && flags != cudaStreamNonBlocking))
    return cudaErrorInvalidValue;
  *stream =
      reinterpret_cast<cudaStream_t>(runtime.create_stream(flags == cudaStreamDefault, priority));
  return cudaSuccess;
}

cudaError_t create_event(Runtime& runtime, cudaEvent_t* event, unsigned int flags) {
  constexpr unsigned int known = cudaEventBlockingSync | cudaEventDisableTiming;
  if (!event || flags & ~(known | cudaEventInterprocess)) return cudaErrorInvalidValue;
  if (flags & ~known) return cudaErrorNotSupported;  // interprocess events
  auto created = std::make_unique<Event>();
  created->timing = !(flags & cudaEventDisableTiming);
  *event = reinterpret_cast<cudaEvent_t>(created.get());
  runtime.events[*event] = std::move(created);
  return cudaSuccess;
}

Event* find_event(Runtime& runtime, cudaEvent_t handle) {
  const auto it = runtime.events.find(handle);
  return it == runtime.events.end() ? nullptr : it->second.get();
}

// A capturing stream, or a captured event, has no execution status: asking for it spoils the
// capture.
cudaError_t check_stream_status(Runtime& runtime, Stream* stream) {
  if (stream->capture) {
    runtime.invalidate(*stream->capture);
    return cudaErrorStreamCaptureUnsupported;
  }
  if (const cudaError_t error = runtime.check_legacy(stream)) return error;
  return runtime.check_unsafe_call();
}

// The same without spoiling it. An event of a capture that has ended is no longer usable.
cudaError_t check_captured(const Event& event) {
  if (!event.captured) return cudaSuccess;
  const auto capture = event.capture.lock();
  return capture && capture->graph ? cudaErrorCapturedEvent : cudaErrorInvalidValue;
}

cudaError_t check_event_status(Runtime& runtime, Event* event) {
  if (const cudaError_t error = check_captured(*event)) {
    if (const auto capture = event->capture.lock()) runtime.invalidate(*capture);
    return error;
  }
  return runtime.check_unsafe_call();
}

}  // namespace

SLOTGRAPH_API cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return entry(
      Call::cudaStreamCreate,
      [=](Runtime& runtime, Runtime::Lock&) {
        return create(runtime, stream, cudaStreamDefault, 0);
      },
      stream);
}

SLOTGRAPH_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return entry(
      Call::cudaStreamCreateWithFlags,
      [=](Runtime& runtime, Runtime::Lock&) { return create(runtime, stream, flags, 0); }, stream,
      flags);
}

SLOTGRAPH_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags,
                                                       int priority) {
  return entry(
      Call::cudaStreamCreateWithPriority,
      [=](Runtime& runtime, Runtime::Lock&) { return create(runtime, stream, flags, priority); },
      stream, flags, priority);
}

// Queued work of the stream still runs.
SLOTGRAPH_API cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return entry(
      Call::cudaStreamDestroy,
      [=](Runtime& runtime, Runtime::Lock&) {
        Stream* const stream = runtime.find_stream(handle);
        if (!stream || !handle || handle == cudaStreamLegacy) return cudaErrorInvalidResourceHandle;
        return runtime.destroy_stream(stream);
      },
      handle);
}

SLOTGRAPH_API cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return entry(
      Call::cudaStreamSynchronize,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        Stream* const stream = runtime.find_stream(handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (const cudaError_t error = check_stream_status(runtime, stream)) return error;
        return runtime.run_until(lock, runtime.last_tasks(stream));
      },
      handle);
}

SLOTGRAPH_API cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return entry(
      Call::cudaStreamQuery,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        Stream* const stream = runtime.find_stream(handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (const cudaError_t error = check_stream_status(runtime, stream)) return error;
        runtime.maybe_progress(lock, 4);
        return runtime.any_pending(runtime.last_tasks(stream)) ? cudaErrorNotReady : cudaSuccess;
      },
      handle);
}

SLOTGRAPH_API cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle,
                                              unsigned int flags) {
  return entry(
      Call::cudaStreamWaitEvent,
      [=](Runtime& runtime, Runtime::Lock&) {
        Stream* const stream = runtime.find_stream(handle);
        Event* const event = find_event(runtime, event_handle);
        if (!stream || !event) return cudaErrorInvalidResourceHandle;
        if (flags != cudaEventWaitDefault) return cudaErrorNotSupported;
        return runtime.wait(stream, event);
      },
      handle, event_handle, flags);
}

SLOTGRAPH_API cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return entry(
      Call::cudaEventCreate,
      [=](Runtime& runtime, Runtime::Lock&) { return create_event(runtime, event, 0); }, event);
}

SLOTGRAPH_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return entry(
      Call::cudaEventCreateWithFlags,
      [=](Runtime& runtime, Runtime::Lock&) { return create_event(runtime, event, flags); }, event,
      flags);
}

SLOTGRAPH_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return entry(
      Call::cudaEventDestroy,
      [=](Runtime& runtime, Runtime::Lock&) {
        return runtime.events.erase(event) ? cudaSuccess : cudaErrorInvalidResourceHandle;
      },
      event);
}

SLOTGRAPH_API cudaError_t cudaEventRecord(cudaEvent_t event_handle, cudaStream_t handle) {
  return entry(
      Call::cudaEventRecord,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        Stream* const stream = runtime.find_stream(handle);
        Event* const event = find_event(runtime, event_handle);
        if (!stream || !event) return cudaErrorInvalidResourceHandle;
        return runtime.record(lock, stream, event);
      },
      event_handle, handle);
}

SLOTGRAPH_API cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return entry(
      Call::cudaEventQuery,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        Event* const event = find_event(runtime, handle);
        if (!event) return cudaErrorInvalidResourceHandle;
        if (const cudaError_t error = check_event_status(runtime, event)) return error;
        runtime.maybe_progress(lock, 4);
        return runtime.scheduler.is_pending(event->task) ? cudaErrorNotReady : cudaSuccess;
      },
      handle);
}

SLOTGRAPH_API cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return entry(
      Call::cudaEventSynchronize,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        Event* const event = find_event(runtime, handle);
        if (!event) return cudaErrorInvalidResourceHandle;
        if (const cudaError_t error = check_event_status(runtime, event)) return error;
        return runtime.run_until(lock, {event->task});
      },
      handle);
}

// Logical time: a microsecond for each operation that the device has run.
SLOTGRAPH_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle,
                                               cudaEvent_t end_handle) {
  return entry(
      Call::cudaEventElapsedTime,
      [=](Runtime& runtime, Runtime::Lock&) {
        Event* const start = find_event(runtime, start_handle);
        Event* const end = find_event(runtime, end_handle);
        if (!milliseconds) return cudaErrorInvalidValue;
        if (!start || !end || !start->timing || !end->timing) return cudaErrorInvalidResourceHandle;
        if (!start->recorded || !end->recorded) return cudaErrorInvalidResourceHandle;
        if (const cudaError_t error = check_captured(*start)) return error;
        if (const cudaError_t error = check_captured(*end)) return error;
        if (runtime.scheduler.is_pending(start->task) || runtime.scheduler.is_pending(end->task)) {
          return cudaErrorNotReady;
        }
        *milliseconds = (static_cast<float>(*end->tick) - static_cast<float>(*start->tick)) * 1e-3f;
        return cudaSuccess;
      },
      milliseconds, start_handle, end_handle);
}

SLOTGRAPH_API cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function,
                                             void* argument) {
  return entry(
      Call::cudaLaunchHostFunc,
      [=](Runtime& runtime, Runtime::Lock& lock) {
        Stream* const stream = runtime.find_stream(handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (!function) return cudaErrorInvalidValue;
        Work work;
        work.kind = Work::Kind::kHostFunction;
        work.function = function;
        work.argument = argument;
        return runtime.submit(lock, stream, std::move(work), cudaGraphNodeTypeHost);
      },
      handle, reinterpret_cast<const void*>(function), argument);
}

}  // namespace slotgraph::emulation

// The device that everything above core/device runs on: real CUDA, or the host device, which runs
// CPU kernels over the memory of the emulated runtime. One of the two is linked; the code above is
// the same for both.
//
// Tensors, streams and the caching allocator are libtorch's own (at::kCUDA, c10::cuda). This header
// adds what differs.
#ifndef CORE_DEVICE_DEVICE_H_
#define CORE_DEVICE_DEVICE_H_

#include <ATen/core/Generator.h>
#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAStream.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace slotgraph::device {

struct Capabilities {
  std::string name;  // `host` or `cuda`
  // What tensor digests depend on, with the versions of torch and its math library.
  std::string instruction_set;
  bool simulated = false;  // all of Simulation is honoured
  // Random operators give cuRAND's values; a generator does not refuse a state in a capture, whose
  // draws then ignore it.
  bool library_random_values = false;
  // That a generator holds in the default pool while a graph that it is registered with is alive.
  std::size_t graph_generator_bytes = 0;
};

// What a case chooses. Addresses and memory are honoured on every device; the order of work and
// what fresh memory holds are the hardware's own on one that is not simulated.
struct Simulation {
  enum class Addresses { kAscending, kDescending, kSeeded, kDriver };  // kDriver: its own choice
  std::uint64_t order_seed = 0;                 // order of queued work; 0 = submission order
  Addresses addresses = Addresses::kAscending;  // of new segments of device memory
  std::uint8_t poison = 0xFF;                   // fills fresh and dead memory
  std::size_t memory_bytes = 0;                 // of each device; 0: what it has
};

struct MemoryInfo {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  std::size_t external_bytes = 0;  // that the driver and libraries have taken for themselves
};

// What exists on all devices.
struct Resources {
  std::size_t segments = 0;  // device memory, in pieces as it was asked for
  std::size_t graphs = 0;    // and executable graphs
  std::size_t events = 0;
  std::size_t captures = 0;  // open ones
  std::size_t queued = 0;    // operations that have not run
};

// Makes the device usable; once a process, before any CUDA tensor. Later calls do nothing. Throws
// slotgraph::Error with rule D02 if there is no device, or its driver does not fit.
void initialise();
Capabilities capabilities();
// Call while nothing is queued.
void configure(const Simulation& simulation);
void synchronise();
// Gives back what the device's libraries keep in the caching allocator between calls (cuBLAS
// workspaces), unless a graph is alive, which may use it. Nothing may be queued.
void release_workspaces();
// Around the life of a private pool, for what the device has besides the caching allocator:
// libtorch 2.11's pinned memory refuses captures into a pool that its graphs have left.
void open_pool(c10::MempoolId_t pool);
void close_pool(c10::MempoolId_t pool);
// Free is what segments leave: what the caching allocator has reserved counts as taken, and what is
// external does not.
MemoryInfo memory_info();
Resources resources();  // no runtime call: an observer may ask
int last_error();       // of this thread, and stays
// The newest runtime calls with arguments and results, oldest first; empty where they are not
// logged.
std::vector<std::string> call_log();
// For fault injection. `observer` is asked before every runtime call, on the calling thread, with
// the call's name (core/trace/calls.h): another result than 0 becomes the call's error, and the
// call does not run. It must not call the runtime, but may call lose(). Null: nobody. Set it while
// nobody is in a call.
void observe_calls(int (*observer)(const char* call, void* context), void* context);
// The device fails for good, as after an illegal access: every later call returns an error, and
// queued work is dropped, as far as the device is simulated.
void lose();
// Default generator of the current device.
at::Generator generator();

// One executable graph, captured once and replayed any number of times.
//
// begin_capture, the captured work and end_capture run on one thread, on the same current stream,
// which is not the default stream. While the capture is open, allocations on its streams come from
// `pool`; the graph holds one use count of the pool from begin_capture until it is destroyed. After
// an exception in the captured work call abandon(), which ends the stream capture and closes the
// allocator scope; the object is then useless.
class Graph {
 public:
  virtual ~Graph() = default;
  // Before begin_capture: the captured work may draw from this generator too, as it may from the
  // default one.
  virtual void register_generator(const at::Generator& generator) = 0;
  virtual void begin_capture(c10::MempoolId_t pool) = 0;
  virtual void end_capture() = 0;
  virtual void abandon() noexcept = 0;
  // True if work queued on the stream now becomes a part of this capture.
  virtual bool captures(c10::cuda::CUDAStream stream) const = 0;
  // Queues the graph on the current stream and advances every generator by what the captured work
  // draws from it.
  virtual void replay() = 0;
};
std::unique_ptr<Graph> make_graph();

}  // namespace slotgraph::device

#endif  // CORE_DEVICE_DEVICE_H_

// What a program can do with a caching allocator, and what it can see of it. The real allocator and
// the model of it are the two subjects; a test does the same to both and compares what it sees.
#ifndef PROPERTIES_ALLOCATOR_SUBJECT_H_
#define PROPERTIES_ALLOCATOR_SUBJECT_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace slotgraph::allocator {

constexpr int kDevices = 2;
constexpr int kStreams = 2;  // of each device
constexpr int kPools = 2;    // private pools of each device: 1, 2; the default pool is 0
constexpr int kThreads = 2;
constexpr int kAny = -1;
constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kCapacity = 96 * kMiB;  // of each device

using Address = std::uintptr_t;

struct Stream {
  int device = 0;
  int index = 0;  // 0: the default stream
  auto operator<=>(const Stream&) const = default;
};

// Whose allocations a scope takes.
struct Filter {
  int thread = kAny;
  int stream = kAny;
  bool admits(int a_thread, int a_stream) const {
    return (thread == kAny || thread == a_thread) && (stream == kAny || stream == a_stream);
  }
};

struct Settings {
  static constexpr std::size_t kUnlimited = SIZE_MAX / kMiB * kMiB;
  std::size_t max_split_bytes = kUnlimited;
  std::size_t divisions = 1;        // roundup_power2_divisions
  double garbage_threshold = 0.99;  // of a device's limit, if it has one below its capacity
};

// What a call did, as its caller sees it.
struct Reply {
  enum class Outcome { kDone, kOutOfMemory, kRefused };
  Outcome outcome = Outcome::kDone;
  std::vector<Address> allocated = {};  // ascending
  std::vector<Address> freed = {};      // restore only: live before, whether live again or not
  bool operator==(const Reply&) const = default;
};

// What a program sees of one device.
struct DeviceState {
  struct Block {
    std::size_t bytes = 0;
    std::size_t requested = 0;  // 0 unless active
    bool allocated = false;
    bool active = false;  // allocated, or waiting for streams that used it
    bool operator==(const Block&) const = default;
  };
  struct Segment {
    Address address = 0;
    int stream = 0;
    int pool = 0;
    bool small = false;
    std::vector<Block> blocks = {};  // by address
    bool operator==(const Segment&) const = default;
  };
  std::vector<Segment> segments;  // by address
  std::map<std::string, std::int64_t> statistics;
  std::map<int, int> use_counts;  // of the private pools that exist
  bool operator==(const DeviceState&) const = default;
};
using DeviceStates = std::array<DeviceState, kDevices>;

std::string to_string(const Reply& reply);
// The lines in which the two differ; empty if none.
std::string difference(const DeviceStates& model, const DeviceStates& real);

class Subject {
 public:
  virtual ~Subject() = default;

  // The thread that makes the calls which follow.
  virtual void switch_to(int thread) = 0;

  virtual Reply allocate(Stream stream, std::size_t bytes) = 0;
  // Refused if no live block starts there.
  virtual Reply free(Address address) = 0;
  virtual Reply record_stream(Address live, Stream stream) = 0;

  virtual Reply begin_scope(int device, int pool, Filter filter) = 0;
  virtual Reply end_scope(int device, int pool) = 0;
  virtual Reply retain(int device, int pool) = 0;  // makes the pool unless it exists
  virtual Reply release(int device, int pool) = 0;
  virtual Reply empty_cache(int pool) = 0;  // on all devices; pool 0: what is in no pool
  virtual Reply forbid_splits(int device, int pool) = 0;
  // Whether requests of the default pool that fail may take the pool's free blocks.
  virtual Reply use_on_oom(int device, int pool, bool use) = 0;

  // Of a private pool. Checkpoints are numbered from 0; one that is refused takes no number.
  virtual Reply take_checkpoint(int device, int pool) = 0;
  virtual Reply restore(int checkpoint) = 0;

  // Work for the device: a mark on the stream, numbered from 0, and waiting until it is reached.
  virtual Reply mark(Stream stream) = 0;
  virtual Reply wait(int mark) = 0;

  // The next attempt to get a segment, on any device, fails: for want of memory, or otherwise.
  virtual Reply fail_next_segment(bool out_of_memory) = 0;
  virtual Reply configure(const Settings& settings) = 0;
  virtual Reply limit(int device, double fraction) = 0;  // of the capacity

  virtual DeviceStates states() = 0;
};

}  // namespace slotgraph::allocator

#endif  // PROPERTIES_ALLOCATOR_SUBJECT_H_

// An independent model of libtorch 2.11's caching allocator on the emulated runtime: no code, no
// data structure and no call of the allocator. It predicts addresses too, because the emulation
// gives the lowest free one.
//
// Statistics are not counted but read off the blocks. Where upstream is wrong the model is wrong in
// the same way; each such place names the test in defects_test.cc that shows it.
//
// Not modelled: expandable segments, pools with an allocator of their own, the reuse option of
// captures, stream captures, peaks. What corrupts the allocator, or depends on the order of a hash
// table, is left out by preconditions (may_...).
#ifndef PROPERTIES_ALLOCATOR_MODEL_H_
#define PROPERTIES_ALLOCATOR_MODEL_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "properties/allocator/subject.h"

namespace slotgraph::allocator {

// What the suite has to reach to be worth its time.
enum class Situation {
  kFreshSegment,
  kReuse,
  kSplit,
  kMerge,
  kWaiting,
  kDeferred,
  kEventDone,
  kRetry,
  kOutOfMemory,
  kGarbage,
  kOversizeReleased,
  kSegmentFreed,
  kPoolErased,
  kRefused,
  kRestored,
  kRestoredStale,
  kInScope,
  kRescue,
  kBroken,
  kCount,
};
const char* name_of(Situation situation);

class Model final : public Subject {
 public:
  // Where blocks may die (may_free): those that were recorded in a scope only inside of one; or
  // they anywhere, and those with other uses only outside.
  enum class Recorded { kDieInside, kDieAnywhere };
  Model(const std::array<Address, kDevices>& bases, Recorded recorded);

  void switch_to(int thread) override { thread_ = thread; }
  Reply allocate(Stream stream, std::size_t bytes) override;
  Reply free(Address address) override;
  Reply record_stream(Address live, Stream stream) override;
  Reply begin_scope(int device, int pool, Filter filter) override;
  Reply end_scope(int device, int pool) override;
  Reply retain(int device, int pool) override;
  Reply release(int device, int pool) override;
  Reply empty_cache(int pool) override;
  Reply forbid_splits(int device, int pool) override;
  Reply use_on_oom(int device, int pool, bool use) override;
  Reply take_checkpoint(int device, int pool) override;
  Reply restore(int checkpoint) override;
  Reply mark(Stream stream) override;
  Reply wait(int mark) override;
  Reply fail_next_segment(bool out_of_memory) override;
  Reply configure(const Settings& settings) override;
  Reply limit(int device, double fraction) override;
  DeviceStates states() override;

  // What a command can name.
  const std::vector<Address>& dead() const { return dead_; }  // starts of blocks freed lately
  std::vector<Address> live() const;
  bool open(int device, int pool) const;  // a scope of it is
  bool exists(int device, int pool) const { return devices_[device].use_counts.contains(pool); }
  int checkpoints() const { return static_cast<int>(checkpoints_.size()); }
  int marks() const { return static_cast<int>(marks_.size()); }
  // Whether the call leaves the real allocator sane.
  bool may_free(Address live) const;
  bool may_release(int device, int pool) const;
  bool may_configure(const Settings& settings) const;
  bool may_empty_cache(int pool) const;
  bool may_restore(int checkpoint) const;
  bool may_use_on_oom(int device, int pool) const;

  // What happened in this model, ever.
  const std::array<std::uint64_t, static_cast<int>(Situation::kCount)>& situations() const {
    return situations_;
  }

 private:
  // The device runs work in order of submission, and only when somebody waits: work is done if its
  // ticket is not above done_.
  using Ticket = std::uint64_t;
  struct Block {
    enum class State { kFree, kLive, kWaiting, kDeferred };  // for events; for the end of scopes
    std::size_t bytes = 0;
    std::size_t requested = 0;
    State state = State::kFree;
    std::set<Stream> uses = {};        // recorded
    std::set<Stream> scope_uses = {};  // recorded while a scope was open
    Ticket until = 0;                  // kWaiting: the last of its events
    std::uint64_t freed_at = 0;        // kFree: searches by then
  };
  struct Segment {
    Stream stream;
    int pool = 0;
    bool small = false;
    std::vector<Block> blocks = {};
    std::size_t bytes() const;
    bool split() const { return blocks.size() > 1; }
    bool whole() const { return !split() && blocks[0].state == Block::State::kFree; }
  };
  struct Scope {
    int pool;
    Filter filter;
  };
  struct Device {
    Address base = 0;
    std::optional<std::size_t> limit;  // of the caching allocator, if below the capacity
    std::map<Address, Segment> segments;
    std::map<int, int> use_counts;  // of private pools; 0: to be erased with its last segment
    std::vector<Scope> scopes;
    std::set<int> unsplit_pools;
    std::set<int> rescue_pools;  // at most one (may_use_on_oom)
    std::uint64_t searches = 0;  // of the default pool's large blocks, while there is a limit
    std::map<std::string, std::int64_t> counters;
    std::size_t reserved() const;
  };
  struct Checkpoint {
    int device;
    int pool;
    std::map<Address, Segment> segments;
  };
  struct Request {
    Stream stream;
    int pool;
    std::size_t bytes;  // rounded
    bool small() const { return bytes <= kMiB; }
    std::size_t segment_bytes() const;
  };
  struct Place {
    std::map<Address, Segment>::iterator segment;
    std::size_t index;
    Address address() const;
    Block& block() const { return segment->second.blocks[index]; }
  };

  static bool serves(const Segment& segment, const Request& request);
  std::size_t rounded(std::size_t bytes) const;
  std::optional<Place> find(Address address, Block::State state);
  std::optional<Place> best_fit(Device& device, const Request& request);
  std::optional<Place> grow(Device& device, const Request& request);
  std::optional<Place> obtain(Device& device, Request& request);
  std::optional<Place> rescue(Device& device, Request& request);
  Address take(Device& device, const Place& place, const Request& request, std::size_t requested);
  void give_back(Device& device, const Place& place);
  void make_free(const Device& device, Segment& segment, std::size_t index);
  void make_free_until(Device& device, Ticket ticket, int pool);

  void flush_deferred(Device& device);
  void synchronise(Device& device, int pool);
  bool release_cached(Device& device, int pool);
  void release_whole_segments(Device& device, int pool);
  bool release_oversize(Device& device, const Request& request);
  void collect_garbage(Device& device);
  void release_segment(Device& device, Address address);

  bool oversize(std::size_t bytes) const { return bytes >= settings_.max_split_bytes; }
  void note(Situation situation) { ++situations_[static_cast<int>(situation)]; }
  Reply refused();
  struct Broken {};  // a call that fails half way

  Recorded recorded_;
  std::array<Device, kDevices> devices_;
  std::vector<Checkpoint> checkpoints_;
  std::vector<Ticket> marks_;
  std::vector<Address> dead_;
  Settings settings_;
  enum class Fault { kNone, kOutOfMemory, kOther } next_segment_ = Fault::kNone;
  int thread_ = 0;
  Ticket issued_ = 0;
  Ticket done_ = 0;
  std::array<std::uint64_t, static_cast<int>(Situation::kCount)> situations_{};
};

}  // namespace slotgraph::allocator

#endif  // PROPERTIES_ALLOCATOR_MODEL_H_

// The allocator as a program uses it: who owns what, and what it must not be asked.
#ifndef PROBES_CONFORMANCE_SUBJECT_H_
#define PROBES_CONFORMANCE_SUBJECT_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "probes/conformance/environment.h"
#include "probes/conformance/program.h"

namespace slotgraph::conformance {

// One for each program, after which end() gives everything back. Operations append their arguments
// to `line` before they call the allocator, and results after it; they throw what the allocator
// throws. An operation that names nothing, or that would corrupt the allocator
// (properties/allocator/model_limits.cc says why), does nothing and says `skipped`.
class Subject {
 public:
  // The device has that many bytes.
  Subject(Environment& environment, std::size_t capacity, std::string& line);

  void perform(const Operation& operation);
  // Queues the events of blocks that died in scopes. Otherwise the next allocation would, and ask
  // for them at once.
  void settle();
  bool unsettled() const { return unsettled_ && open_.empty(); }
  // Whether events may be queued: wait for the device before an operation that may ask for them.
  bool recorded() const { return recorded_; }
  // Whether only segments of the default pool can go back now: after a failure the count of a
  // private pool's segments would be wrong.
  bool may_fail_frees() const;
  // All blocks, scopes and pools; settings as at the start.
  void end();

 private:
  struct Live {
    at::DataPtr owner;
    int pool = 0;
    int stream = 0;
    std::set<int> uses = {};        // recorded outside of scopes
    std::set<int> scope_uses = {};  // and while one was open
    std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(owner.get()); }
  };
  struct Shape {  // of a segment
    std::size_t bytes;
    void* stream;
    bool large;
    bool split;
  };
  using Shapes = std::map<std::size_t, Shape>;  // by address
  struct Checkpoint {
    int pool;
    std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> state;
    Shapes shapes;
  };

  void allocate(const Operation& operation);
  void free(const Operation& operation);
  void record_stream(const Operation& operation);
  void begin_scope(const Operation& operation);
  void end_scope(const Operation& operation);
  void retain(const Operation& operation);
  void release(const Operation& operation);
  void empty_cache(const Operation& operation);
  void checkpoint(const Operation& operation);
  void restore(const Operation& operation);
  void configure(const Settings& settings);
  void limit(std::size_t bytes);
  void memory();

  void skip() { line_ += " skipped"; }
  int serving_pool(int stream) const;
  std::optional<int> use_count(int pool) const;  // nothing if there is no such pool
  Shapes shapes_of(int pool) const;
  bool may_configure(const Settings& settings) const;
  bool may_restore(const Checkpoint& checkpoint) const;

  Environment& environment_;
  std::size_t capacity_;
  std::string& line_;
  std::vector<Live> live_;
  std::vector<Checkpoint> checkpoints_;
  struct Scope {
    int pool;
    int stream;
  };
  std::vector<Scope> open_;
  std::size_t max_split_bytes_ = SIZE_MAX;
  bool recorded_ = false;
  bool unsettled_ = false;
};

}  // namespace slotgraph::conformance

#endif  // PROBES_CONFORMANCE_SUBJECT_H_

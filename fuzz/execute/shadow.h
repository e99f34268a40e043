// Shadow memory: what a replay may neither read nor write.
#ifndef FUZZ_EXECUTE_SHADOW_H_
#define FUZZ_EXECUTE_SHADOW_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/callables.h"

namespace slotgraph::fuzz {

// Keeps which bytes of a set's pools are owned: by frames in flight, and by leading-input gradients
// until the end of the rank's next backward event. Before each replay every other byte is poisoned,
// in stream order: whoever reads it shows it. After it the bytes of all others must be what they
// were.
class Shadow {
 public:
  Shadow(CallableSet& set, const Plan& plan, int poison);

  void before_forward(int branch);
  void after_forward(int branch);
  void before_backward(int branch);
  void after_backward(int branch);
  // A frame ends without backward.
  void release(int branch) { flights_.erase(branch); }
  // A backward event of a chunk without layers.
  void empty_backward(int chunk, int physical_slot) { begin_event({chunk, physical_slot}); }
  void end_step();

  // Where bytes of others changed.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  using Event = std::pair<int, int>;  // chunk, physical slot of a backward
  struct Kept {
    std::string owner;
    Region region;
    at::Tensor bytes;
  };
  void begin_event(const Event& event);
  std::vector<std::pair<std::string, Region>> owned(int except) const;
  void poison_dead(const std::vector<std::pair<std::string, Region>>& owned) const;
  void keep(int except);
  void verify(const std::string& replay);

  CallableSet& set_;
  const Plan& plan_;
  int poison_;
  std::map<int, std::vector<Region>> flights_;  // by branch
  std::optional<Event> event_;                  // the newest backward event
  std::vector<Region> newest_;                  // its gradient, and that of the event before
  std::vector<Region> previous_;
  std::vector<Kept> kept_;
  std::vector<std::string> faults_;
};

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_SHADOW_H_

// Shadow memory: what a replay may neither read nor write.
#ifndef FUZZ_EXECUTE_SHADOW_H_
#define FUZZ_EXECUTE_SHADOW_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph_callables.h"
#include "fuzz/execute/replay_watcher.h"

namespace slotgraph::fuzz {

// Keeps which bytes of a set's pools are owned: by frames in flight, and by leading-input gradients
// until the end of the rank's next backward event. Before each replay every other byte is poisoned,
// in stream order: whoever reads it shows it. After it the bytes of all others must be what they
// were.
class Shadow final : public ReplayWatcher {
 public:
  Shadow(CallableSet& set, const Plan& plan, int poison);

  void before_forward(const Replay& replay) override;
  void after_forward(const Replay& replay, const Tensors& outputs) override;
  void before_backward(const Replay& replay) override;
  void after_backward(const Replay& replay, const Tensors& gradients) override;
  void release(const Replay& replay) override { flights_.erase(replay.branch); }
  void empty_backward(int chunk, int physical_slot) override {
    begin_event({chunk, physical_slot});
  }
  void end_step() override;
  std::vector<Finding> findings(const std::string& execution) const override;

 private:
  using Event = std::pair<int, int>;  // chunk, physical slot of a backward
  struct OwnedBytes {
    std::string owner;
    Region region;
    at::Tensor bytes;
  };
  void begin_event(const Event& event);
  std::vector<std::pair<std::string, Region>> owned(int except) const;
  void poison_dead(const std::vector<std::pair<std::string, Region>>& owned) const;
  void keep_others(int except);
  void verify(const std::string& replay);

  CallableSet& set_;
  const Plan& plan_;
  int poison_;
  std::map<int, std::vector<Region>> flights_;  // by branch
  std::optional<Event> event_;                  // the newest backward event
  std::vector<Region> newest_;                  // its gradient, and that of the event before
  std::vector<Region> previous_;
  std::vector<OwnedBytes> others_;
  std::vector<std::string> faults_;  // where bytes of others changed
};

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_SHADOW_H_

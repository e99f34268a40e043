// Checking mode: what was handed out, and what happens to it when its life ends.
#ifndef CORE_GRAPH_REPLAY_LEASE_H_
#define CORE_GRAPH_REPLAY_LEASE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/callable.h"

namespace slotgraph {

// Tensors that a consumer has, over memory of the runtime.
struct Lease {
  std::string what;  // for errors
  std::vector<c10::Storage> storages;
  // Of each tensor, shared with its views: the counter of writes, and what it said at first.
  std::vector<std::pair<c10::VariableVersion, std::uint32_t>> versions;
};

// Not thread-safe: used under the lock of its set. Work is queued on the current stream.
class LeaseBook {
 public:
  using Event = std::pair<int, int>;  // chunk, physical slot of a backward

  // Other tensors over the same memory, with storages of their own: those that shared one still do.
  // Undefined tensors stay.
  static std::pair<Tensors, Lease> lend(const Tensors& tensors, std::string what);
  // Poisons the bytes, unless they have another owner by now, and makes every access to them
  // through the lent storages throw an error that names P11.
  void end(Lease lease, bool poison);

  // Those of an earlier flight that nothing ended have lost their memory to this one.
  void lend_outputs(int branch, int colour, Lease lease);
  // Throws Error P11 if one of them has been written since it was lent.
  void check_outputs(int branch) const;
  void end_outputs(int branch);
  // A layer's backward begins: at a new event the gradient of the event before the last one is no
  // longer needed.
  void begin_backward(const Event& event);
  // Its gradient takes the place of the one that the layer before it in the same event returned,
  // which has been copied.
  void lend_gradient(int colour, Lease lease);
  void end_step();

  // Somebody is about to write to the arena of a colour. Throws Error P11 if bytes there, poisoned
  // when their life ended, have been written since.
  void enter(int colour);
  void enter_gradient(int colour);

 private:
  struct Loan {
    int colour = 0;
    Lease lease;
  };
  struct DeadBytes {
    std::string what;
    Region region;
  };
  void end(Loan lent, bool poison, std::map<int, std::vector<DeadBytes>>& poisoned);
  static void check(std::map<int, std::vector<DeadBytes>>& poisoned, int colour);

  std::map<int, Loan> outputs_;  // by branch
  std::optional<Event> event_;   // the newest backward event
  std::optional<Loan> newest_;   // gradient that it returned
  std::optional<Loan> previous_;
  std::map<int, std::vector<DeadBytes>> poisoned_;           // by colour
  std::map<int, std::vector<DeadBytes>> poisoned_gradient_;  // by gradient colour
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_REPLAY_LEASE_H_

// Equal slots have equal addresses.
#ifndef FUZZ_EXECUTE_ADDRESS_BOOK_H_
#define FUZZ_EXECUTE_ADDRESS_BOOK_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "fuzz/execute/replay_watcher.h"

namespace slotgraph::fuzz {

// Notes where output 0 and the leading input's gradient of each frame lie: in every variant and
// every step where they lay at first.
class AddressBook final : public ReplayWatcher {
 public:
  explicit AddressBook(const Plan& plan) : plan_(plan) {}

  void after_forward(const Replay& replay, const Tensors& outputs) override;
  void after_backward(const Replay& replay, const Tensors& gradients) override;
  std::vector<Finding> findings(const std::string& execution) const override;

 private:
  void note(const Replay& replay, const char* what, const at::Tensor& tensor);

  const Plan& plan_;
  std::map<std::pair<int, std::string>, const void*> first_;  // by frame and tensor
  std::vector<std::string> faults_;
};

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_ADDRESS_BOOK_H_

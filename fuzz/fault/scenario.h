// A case in one sharing mode as an operation of a sweep: capture, one run of the schedule,
// teardown.
#ifndef FUZZ_FAULT_SCENARIO_H_
#define FUZZ_FAULT_SCENARIO_H_

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph_callables.h"
#include "fuzz/case/case.h"
#include "fuzz/execute/model.h"
#include "fuzz/execute/observer.h"
#include "fuzz/fault/state.h"
#include "fuzz/fault/trial.h"

namespace slotgraph::fuzz {

// The case of 2 variants x 2 chunks x 2 layers x 4 slots that is swept if none is given.
Case reference_case();
// A small one of another shape and other blocks: what must still work after a failure.
Case other_case();

// A case with its truth.
class Subject {
 public:
  explicit Subject(Case value);
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  // Captures; the modules announce the steps of their forward and backward, and the hooks theirs.
  std::unique_ptr<CallableSet> capture(Mode mode);
  // Runs the schedule once; what differs from eager.
  std::vector<std::string> drive(CallableSet& set);
  // Both, and drops the set.
  std::vector<std::string> run(Mode mode);

  void reset() { model_.reset(); }
  const std::vector<GraphModule>& modules() const { return modules_; }

 private:
  Case case_;
  Model model_;
  std::vector<GraphModule> modules_;
  std::vector<Inputs> samples_;
  std::unique_ptr<Truth> truth_ = make_truth(/*on_device=*/false);
};

class Scenario {
 public:
  // The device is configured as the case asks, again before each run.
  Scenario(const Case& value, Mode mode);

  // Contracts: state, contents as before the call if it was the capture that failed,
  // values if nothing was thrown, an earlier set still replays right, the same case and another
  // one can be captured and replayed.
  Operation operation();
  // A run with that injection. A lost device can be asked nothing: then no contract is checked, but
  // the operation must not have come to its end, and the process is of no further use.
  Trial run_injected(
      const Injection& injection,
      const std::function<void(const std::vector<std::string>& stack)>& before = nullptr);

 private:
  void run();
  std::vector<std::string> changed_state();
  std::vector<std::string> changed_contents() const;
  std::vector<std::string> left_events() const;

  Case case_;
  Mode mode_;
  Subject subject_, other_;
  std::unique_ptr<CallableSet> earlier_;  // of the other case
  StateSnapshot before_;
  std::string contents_before_;
  std::size_t most_events_ = 0;           // that exist after runs without failure
  bool in_capture_ = false;               // the last run ended there
  std::vector<std::string> differences_;  // of its values
};

}  // namespace slotgraph::fuzz

#endif  // FUZZ_FAULT_SCENARIO_H_

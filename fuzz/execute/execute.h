// Runs cases through eager, native-graph and slot-graph execution and compares them byte for byte.
#ifndef FUZZ_EXECUTE_EXECUTE_H_
#define FUZZ_EXECUTE_EXECUTE_H_

#include <c10/cuda/CUDAStream.h>

#include <memory>

#include "core/device/device.h"
#include "core/graph/graph_callables.h"
#include "core/record/record.h"
#include "fuzz/case/case.h"

namespace slotgraph::fuzz {

struct ExecuteOptions {
  // Cases that differ in their schedule only, one after the other, share one capture.
  bool keep_captures = false;
  // Tensors are kept and compared where they are, without the place of the first difference: for
  // devices whose memory is far from the host.
  bool compare_on_device = false;
};

class CaseRun;

// On one thread, whose stream is the same in all runs; the device must be initialised and, before
// the first run, idle.
class Executor {
 public:
  explicit Executor(const ExecuteOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Fills everything of the record but its index and case_file. A broken promise is a finding, and
  // the verdict is violated; so is an exception of the runtime under test. Memory that does not
  // come back is a finding of the run that gives the captures up. An unknown block is bad input:
  // throws Error M02.
  Record run(const Case& value);

  // Gives the captures up; what has not come back.
  std::vector<Finding> end();

 private:
  ExecuteOptions options_;
  c10::cuda::CUDAStream stream_;
  std::unique_ptr<CaseRun> kept_;
};

// Runs one case and gives everything back.
Record execute(const Case& value);

// What the case asks of a simulated device.
device::Simulation simulation_of(const Case& value);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_EXECUTE_H_

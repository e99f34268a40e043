// Runs one case through eager, native-graph and slot-graph execution and compares them byte for
// byte.
#ifndef FUZZ_EXECUTE_EXECUTE_H_
#define FUZZ_EXECUTE_EXECUTE_H_

#include "core/device/device.h"
#include "core/graph/callables.h"
#include "core/record/record.h"
#include "fuzz/case/case.h"

namespace slotgraph::fuzz {

// Runs the case on the calling thread; the device must be initialised and idle. Fills everything of
// the record but its index and case_file. A broken promise is a finding, and the verdict is
// violated; so is an exception of the runtime under test. An unknown block is bad input: throws
// Error M02.
Record execute(const Case& value);

// `placement`, `arena`, `checkpoint` or `native`.
Mode mode_from_name(const std::string& name);

// What the case asks of a simulated device.
device::Simulation simulation_of(const Case& value);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_EXECUTE_H_

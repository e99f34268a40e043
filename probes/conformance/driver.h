// Gives programs to worker processes and puts what they found together.
#ifndef PROBES_CONFORMANCE_DRIVER_H_
#define PROBES_CONFORMANCE_DRIVER_H_

#include <cstddef>
#include <string>

#include "probes/conformance/options.h"
#include "probes/conformance/results.h"

namespace slotgraph::conformance {

// Runs all programs in workers, `program --worker`. Keeps the first `logs` logs of each policy.
// Returns an exit code; anything but 0 has been explained on standard error.
int drive(const Options& options, std::size_t logs, const std::string& program, Results& results);

}  // namespace slotgraph::conformance

#endif  // PROBES_CONFORMANCE_DRIVER_H_

// Whether a run is what an earlier one was.
#ifndef PROBES_CONFORMANCE_COMPARE_H_
#define PROBES_CONFORMANCE_COMPARE_H_

#include <string>

#include "probes/conformance/results.h"

namespace slotgraph::conformance {

struct Comparison {
  bool equal = false;
  std::string text;  // what was compared, what was equal, and where the first difference is
};

// Every program of the run has to be in the golden folder, with the same digest.
Comparison compare(const Results& results, const Golden& golden);

}  // namespace slotgraph::conformance

#endif  // PROBES_CONFORMANCE_COMPARE_H_

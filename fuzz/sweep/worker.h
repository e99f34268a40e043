// The process in which things fail. It reads one JSON line for each request and answers with lines:
//   {"mode": M, "injection": null}  the points that a run without failure reaches:
//       {"points": [{"point", "phase", "classes": [{"class", "count", "picks"}]}], "findings"}
//   {"mode": M, "injection": I}     one trial: {"note": [call stack]} before each failure, then
//       {"trial": {"error", "findings"}}
#ifndef FUZZ_SWEEP_WORKER_H_
#define FUZZ_SWEEP_WORKER_H_

#include "fuzz/case/case.h"

namespace slotgraph::fuzz {

Case case_of(const std::string& case_file);  // the reference case if empty
// After a sticky error it ends.
int run_sweep_worker(const Case& value);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_SWEEP_WORKER_H_

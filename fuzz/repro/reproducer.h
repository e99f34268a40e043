// A reproducer: a folder that holds everything about one failure.
//
//   experiment.json   what to run
//   manifest.json     versions, device, seed, signature, findings (with digests), verdict
//   events.log        runtime calls of the run that was recorded, the newest 65,536
//   allocator.txt     the allocator's segments and blocks after it
//   reproducer_test.cc, BUILD   a GoogleTest that fails as long as the failure is there
//   repro.sh          the one command
#ifndef FUZZ_REPRO_REPRODUCER_H_
#define FUZZ_REPRO_REPRODUCER_H_

#include <string>

#include "fuzz/process/child.h"
#include "fuzz/repro/experiment.h"

namespace slotgraph::fuzz {

struct Reproducer {
  Experiment experiment;
  Observation observation;
};

// Writes the folder. If the run was recorded, its log and allocator are there already.
void write_reproducer(const std::string& folder, const Reproducer& reproducer);
// Throws Error: J.., F01 a folder of another schema, F06 one that another version wrote.
Reproducer read_reproducer(const std::string& folder);

// Runs an experiment in a fresh child; `record` is a folder for events.log and allocator.txt, or
// empty. `program` is the program `repro`.
Observation observe_in_child(const std::string& program, const std::string& folder,
                             const Experiment& experiment, const std::string& record);

// Runs a failure again before it is reported, and writes its folder. Returns what the second run
// shows: another signature than the first one means that it is flaky, which the manifest says.
Observation confirm(const std::string& program, const std::string& folder,
                    const Reproducer& failure);

// The child's side.
int run_observer();

}  // namespace slotgraph::fuzz

#endif  // FUZZ_REPRO_REPRODUCER_H_

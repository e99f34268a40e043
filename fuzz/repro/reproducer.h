// A reproducer: a folder that holds everything about one failure.
//
//   experiment.json   what to run
//   manifest.json     versions, device, seed, signature, findings (with digests), verdict
//   events.log        runtime calls up to the injected failure, or of the whole run: the newest
//   65,536 allocator.txt     the allocator's segments and blocks after the run, if it came to an
//   end reproducer_test.cc, BUILD   a GoogleTest that fails as long as the failure is there
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

// A child that runs experiments (`program` is the program `repro`): they may end it.
class ObserverProcess {
 public:
  // `folder` is for its files. Throws Error F03.
  ObserverProcess(const std::string& program, const std::string& folder);
  // `record` is a folder for events.log and allocator.txt, or empty. The log goes up to the first
  // injected failure, or to the end.
  void start(const Experiment& experiment, const std::string& record);
  // Waits. A run without end, and one whose fault point is not reached, is unknown.
  Observation finish();

 private:
  Child child_;
  std::string file_;
  Experiment experiment_;
  FatalTable table_;
};

// Runs a failure again before it is reported, and writes its folder. Returns what the second run
// shows: another signature than the first one means that it is flaky, which the manifest says.
Observation confirm(const std::string& program, const std::string& folder,
                    const Reproducer& failure);

// The child's side.
int run_observer();

}  // namespace slotgraph::fuzz

#endif  // FUZZ_REPRO_REPRODUCER_H_

// A reproducer: a folder that holds everything about one failure.
//
//   experiment.json            what to run
//   manifest.json              versions, device, seed, signature, findings with digests, verdict
//   events.log                 the newest 65,536 runtime calls up to the injected failure, or of
//                              the whole run
//   allocator.txt              the allocator's segments and blocks after the run, if it came to
//                              an end
//   reproducer_test.cc, BUILD  a GoogleTest that fails as long as the failure is there
//   repro.sh                   the one command
#ifndef FUZZ_REPRO_REPRODUCER_H_
#define FUZZ_REPRO_REPRODUCER_H_

#include <string>
#include <vector>

#include "fuzz/process/pool.h"
#include "fuzz/process/program.h"
#include "fuzz/repro/experiment.h"

namespace slotgraph::fuzz {

// The protocol of an observer: an experiment, and what it shows.
struct ObserveRequest {
  Experiment experiment;
  std::string record;
};
void to_json(nlohmann::json& json, const ObserveRequest& request);
void from_json(const nlohmann::json& json, ObserveRequest& request);
void to_json(nlohmann::json& json, const Observation& observation);
void from_json(const nlohmann::json& json, Observation& observation);

struct Reproducer {
  Experiment experiment;
  Observation observation;
};

// Writes the folder. If the run was recorded, its log and allocator are there already.
void write_reproducer(const std::string& folder, const Reproducer& reproducer);
// Throws Error: J.., F01 a folder of another schema, F06 one that another version wrote.
Reproducer read_reproducer(const std::string& folder);

// Children that run experiments (`program` is the program `repro`): these may end them. A run
// without end, and one whose fault point is not reached, is unknown.
class Observers {
 public:
  explicit Observers(const std::string& program, int count = 1);
  // What they show, in the same order; as many at once as there are children. `record` is a folder
  // for events.log and allocator.txt of each, or empty. The log goes up to the first injected
  // failure, or to the end.
  std::vector<Observation> observe(const std::vector<Experiment>& experiments,
                                   const std::string& record = "");

 private:
  TemporaryFolder errors_;
  FatalTable table_;
  Pool<ObserveRequest, Observation> pool_;
};

// How many failures a program confirms, and shows one by one.
inline constexpr int kMostReported = 20;

// Runs a failure again before it is reported, and writes its folder. Returns what the second run
// shows: another signature than the first one means that it is flaky, which the manifest says.
Observation confirm(const std::string& program, const std::string& folder,
                    const Reproducer& failure);

// The child's side.
int run_observer();

}  // namespace slotgraph::fuzz

#endif  // FUZZ_REPRO_REPRODUCER_H_

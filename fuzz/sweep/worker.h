// The process in which things fail.
#ifndef FUZZ_SWEEP_WORKER_H_
#define FUZZ_SWEEP_WORKER_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/mode.h"
#include "fuzz/case/case.h"
#include "fuzz/fault/injector.h"

namespace slotgraph::fuzz {

// The protocol: one trial, or without an injection the list of what can be injected. Before each
// injected failure the worker tells its call stack: of the first ones, then null.
struct TrialRequest {
  Mode mode = Mode::kPlacement;
  std::optional<Injection> injection;
};

// Calls of one point from one place of the code, by their numbers.
struct PointClass {
  std::uint64_t count = 0;
  std::vector<std::uint64_t> picks;  // the first, second and last of them
};
struct ReachedPoint {
  std::string point;
  std::string phase;
  std::vector<PointClass> classes;
};
// `findings`: contracts that are broken, after the trial, or without any failure.
struct TrialReply {
  std::vector<ReachedPoint> points;
  std::string error;  // that the trial threw
  std::vector<std::string> findings;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PointClass, count, picks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReachedPoint, point, phase, classes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrialReply, points, error, findings)
void to_json(nlohmann::json& json, const TrialRequest& request);
void from_json(const nlohmann::json& json, TrialRequest& request);

Case case_of(const std::string& case_file);  // the reference case if empty
// Serves TrialRequest. After the device was lost it ends.
int run_sweep_worker(const Case& value);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_SWEEP_WORKER_H_

// What came out of one injected failure, and of a sweep.
#ifndef FUZZ_SWEEP_RESULT_H_
#define FUZZ_SWEEP_RESULT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/graph/mode.h"
#include "core/record/verdict.h"
#include "fuzz/fault/ends.h"
#include "fuzz/fault/sweep.h"

namespace slotgraph::fuzz {

enum class TrialOutcome {
  kNotReached,     // nothing fired: the number is beyond the last one
  kRecovered,      // the operation threw
  kAbsorbed,       // the operation came to its end
  kUpstreamFatal,  // libtorch ended the process where the committed table says so
  kFatal,          // the runtime ended the process: it could not undo what it had done
  kSticky,         // the device was lost
  kDied,           // the process ended otherwise
  kHung,
};
std::string to_string(TrialOutcome outcome);

struct Result {
  Mode mode = Mode::kPlacement;
  Injection injection;
  TrialOutcome outcome = TrialOutcome::kHung;
  Verdict verdict = Verdict::kUnknown;
  std::string error;
  std::vector<std::string> findings;
  std::vector<std::string> stack;  // of the last failure, from the point outwards
  int fired = 0;                   // how often something failed
  std::string folder;              // the reproducer of a failure
};
nlohmann::json to_json(const Result& result);

// Holds if libtorch ended it where the table says so, if the runtime did because a second failure
// kept it from undoing a first one, or if the device was lost.
Result judge_end(Mode mode, const Injection& injection, const End& end, const FatalTable& table);

// What came out of all trials.
struct SweepSummary {
  Sweep::Totals totals;
  std::uint64_t runs = 0;
  VerdictCounts verdicts;
  std::map<TrialOutcome, std::uint64_t> outcomes;
  // By mode, phase and point; the points of a mode are listed before any of them fails.
  struct Row {
    std::uint64_t classes = 0, calls = 0, runs = 0;
    std::map<TrialOutcome, std::uint64_t> outcomes;
    std::uint64_t violated = 0;
  };
  std::map<std::string, std::map<Point, Row>> rows;
};
nlohmann::json to_json(const SweepSummary& summary);
// One line for each phase and point, columns for each mode.
std::string table_of(const SweepSummary& summary);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_SWEEP_RESULT_H_

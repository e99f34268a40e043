// What came out of one injected failure, and of a sweep.
#ifndef FUZZ_SWEEP_RESULT_H_
#define FUZZ_SWEEP_RESULT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/record/record.h"
#include "fuzz/sweep/injector.h"

namespace slotgraph::fuzz {

enum class Outcome {
  kNotReached,     // nothing fired: the number is beyond the last one
  kRecovered,      // the operation threw
  kAbsorbed,       // the operation came to its end
  kUpstreamFatal,  // libtorch ended the process where the committed table says so
  kFatal,          // the runtime ended the process: it could not undo what it had done
  kSticky,         // the device was lost
  kDied,           // the process ended otherwise
  kHung,
};
std::string to_string(Outcome outcome);

struct Result {
  std::string mode;
  Injection injection;
  Outcome outcome = Outcome::kHung;
  Verdict verdict = Verdict::kUnknown;
  std::string error;
  std::vector<std::string> findings;
  std::vector<std::string> stack;  // of the last failure, from the point outwards
  int fired = 0;                   // how often something failed
  std::string folder;              // the reproducer of a failure
};
nlohmann::json to_json(const Result& result);

// Where libtorch ends the process when a call fails: it frees memory in destructors that may not
// throw. One row for each call and function, in fatal_points.csv.
class FatalTable {
 public:
  // Throws Error F04, F05 (no such file; a line that is not `call,frame,why`).
  static FatalTable read(const std::string& path);
  // The row for a failure of the call at the top of the stack under one of the functions below, by
  // its function; empty: none.
  std::string find(const std::vector<std::string>& stack) const;

 private:
  struct Row {
    std::string call;
    std::string frame;
  };
  std::vector<Row> rows_;
};

// How a process ended: exit code (128 + signal), what it wrote to its standard error, how often
// something had failed in it, and where it did last.
struct End {
  int code = 0;
  std::string errors;
  int fired = 0;
  std::vector<std::string> stack;
};
// What two such ends of one kind have in common: `code 134, upstream: uncheckedSetDevice` or the
// line that says why, without its numbers.
std::string kind_of_end(const End& end, const FatalTable& table);
// Holds if libtorch ended it where the table says so, if the runtime did because a second failure
// kept it from undoing a first one, or if the device was lost.
Result judge_end(const std::string& mode, const Injection& injection, const End& end,
                 const FatalTable& table);

// The text without its numbers and addresses.
std::string without_numbers(const std::string& text);

// What came out of all trials.
struct SweepSummary {
  std::uint64_t fault_points = 0;    // that were meant to fail
  std::uint64_t points_reached = 0;  // that did
  std::uint64_t runs = 0;
  bool ended = true;      // every run that was planned was made
  std::uint64_t cut = 0;  // pairs whose second failure was not followed to its end
  // Points whose last run fired nothing, and all of them.
  std::uint64_t exhausted = 0, points = 0;
  std::map<std::string, std::uint64_t> verdicts, outcomes;
  // By mode, phase and point.
  struct Row {
    std::uint64_t classes = 0, calls = 0, runs = 0;
    std::map<Outcome, std::uint64_t> outcomes;
    std::uint64_t violated = 0;
  };
  std::map<std::string, std::map<Point, Row>> rows;

  // Everything fired, and then nothing more did.
  bool complete() const {
    return ended && cut == 0 && points_reached == fault_points && exhausted == points;
  }
};
nlohmann::json to_json(const SweepSummary& summary);
// One line for each phase and point, columns for each mode.
std::string table_of(const SweepSummary& summary);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_SWEEP_RESULT_H_

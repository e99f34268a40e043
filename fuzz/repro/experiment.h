// Something that can be run again and judged: a case, or a case with a failure injected.
#ifndef FUZZ_REPRO_EXPERIMENT_H_
#define FUZZ_REPRO_EXPERIMENT_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/record/record.h"
#include "fuzz/case/case.h"
#include "fuzz/sweep/injector.h"

namespace slotgraph::fuzz {

struct Experiment {
  Case value;
  std::string mode;  // of the injection: `placement`, `arena`, `checkpoint`, `native`
  std::optional<Injection> injection;
};

// {"case": .., "mode": .., "injection": .. or null}.
nlohmann::json to_json(const Experiment& experiment);
// Throws Error as case_from_json and injection_from_json.
Experiment experiment_from_json(const JsonReader& reader);

struct Observation {
  Verdict verdict = Verdict::kUnknown;
  // What kind of failure it is: invariant, execution or mode, phase, class of fault. Numbers of
  // microbatches, bytes and addresses are no part of it. Empty if it holds.
  std::string signature;
  std::vector<std::string> findings;
};
nlohmann::json to_json(const Observation& observation);
Observation observation_from_json(const nlohmann::json& json);

// What a record, or a trial of a sweep, shows.
Observation observation_of(const Record& record);
Observation observation_of(const std::string& mode, const Injection& injection,
                           const std::vector<std::string>& findings);

// Runs it in this process.
Observation observe(const Experiment& experiment);

// Of a child process that ended instead of answering: its code (128 + signal) and what it wrote to
// its standard error.
Observation observation_of_end(int code, const std::string& errors);

// The text without its numbers and addresses: what two failures of one kind have in common.
std::string without_numbers(const std::string& text);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_REPRO_EXPERIMENT_H_

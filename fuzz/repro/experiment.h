// Something that can be run again and judged: a case, or a case with a failure injected.
#ifndef FUZZ_REPRO_EXPERIMENT_H_
#define FUZZ_REPRO_EXPERIMENT_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/record/record.h"
#include "fuzz/case/case.h"
#include "fuzz/fault/ends.h"
#include "fuzz/fault/injector.h"

namespace slotgraph::fuzz {

struct Experiment {
  Case value;
  std::optional<Injection> injection = std::nullopt;
  Mode mode = Mode::kPlacement;  // in which it is injected
};

// {"case": .., "mode": .., "injection": .. or null}; without injection the mode says nothing.
nlohmann::json to_json(const Experiment& experiment);
// Throws Error as case_from_json and injection_from_json.
Experiment experiment_from_json(const JsonReader& reader);

struct Observation {
  Verdict verdict = Verdict::kUnknown;
  // What kind of failure it is: invariant, execution or mode, and the tensor's or the fault point's
  // kind. Numbers of microbatches, bytes and addresses are no part of it, nor is how often the
  // point fails. Empty if it holds.
  std::string signature;
  std::vector<std::string> findings;
};
nlohmann::json to_json(const Observation& observation);
// Throws Error J03, J04.
Observation observation_from_json(const JsonReader& reader);

// What a record, or a trial of a sweep, shows.
Observation observation_of(const Record& record);
Observation observation_of(Mode mode, const Injection& injection,
                           const std::vector<std::string>& findings);

// Runs it in this process. `before` is told the call stack before each injected failure.
Observation observe(
    const Experiment& experiment,
    const std::function<void(const std::vector<std::string>& stack)>& before = nullptr);

// Of a child process that ended instead of answering.
Observation observation_of_end(const Experiment& experiment, const End& end,
                               const FatalTable& table);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_REPRO_EXPERIMENT_H_

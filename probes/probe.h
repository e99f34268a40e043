// A probe: a stand-alone experiment that asks the runtime questions whose answers its contract
// gives, and shows question, answer and contract side by side.
#ifndef PROBES_PROBE_H_
#define PROBES_PROBE_H_

#include <concepts>
#include <functional>
#include <string>
#include <vector>

#include "core/record/record.h"

namespace slotgraph::probes {

// One question to one execution. Nothing in it depends on addresses or time: a run repeats exactly.
struct Row {
  std::string question;
  std::string execution;
  std::string found;
  std::string expected;
  Verdict verdict = Verdict::kUnknown;
};

struct Probe {
  std::string name;
  std::string shows;
  std::function<std::vector<Row>()> run;  // on the calling thread; the device is initialised
};
// Each probe registers itself, in its own file: `const bool registered = register_probe({..});`.
bool register_probe(Probe probe);
// By name.
std::vector<Probe> all_probes();

// Collects the rows of one execution. A verdict follows from what was found and what is expected;
// there is no other way to write one.
class Rows {
 public:
  Rows(std::vector<Row>& rows, std::string execution)
      : rows_(rows), execution_(std::move(execution)) {}

  void expect(const std::string& question, const std::string& found, const std::string& expected);
  // Of bool only: a text that is no std::string would become one too.
  void expect(const std::string& question, std::same_as<bool> auto found, bool expected = true) {
    expect(question, std::string(found ? "yes" : "no"), std::string(expected ? "yes" : "no"));
  }
  // The experiment itself could not be set up, so that nothing is known.
  void unknown(const std::string& question, const std::string& why, const std::string& expected);
  // Runs a part of the experiment. An exception in it is a violation of the question.
  void attempt(const std::string& question, const std::function<void()>& part);

 private:
  std::vector<Row>& rows_;
  std::string execution_;
};

VerdictCounts count(const std::vector<Row>& rows);
// An aligned table with a headline and the number of each verdict.
std::string table(const Probe& probe, const std::vector<Row>& rows);

inline constexpr int kProbeSchema = 1;
// One JSON object a line.
std::string records(const Probe& probe, const std::vector<Row>& rows);

}  // namespace slotgraph::probes

#endif  // PROBES_PROBE_H_

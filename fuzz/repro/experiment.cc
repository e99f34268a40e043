#include "fuzz/repro/experiment.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include "core/device/device.h"
#include "fuzz/execute/execute.h"
#include "fuzz/fault/scenario.h"

namespace slotgraph::fuzz {
namespace {

std::string until(const std::string& text, const char* end) {
  return text.substr(0, text.find(end));
}

// A rule of ours is the kind of the error; of other errors it is the first line.
std::string kind_of_error(const std::string& text) {
  const std::size_t rule = text.find('[');
  const std::size_t end = text.find(']', rule);
  if (rule == 0 && end != std::string::npos) return text.substr(0, end + 1);
  return without_numbers(until(text, "\n"));
}

// The last part of a place names the tensor.
std::string kind_of_tensor(const std::string& where) {
  const std::size_t comma = where.rfind(", ");
  return without_numbers(comma == std::string::npos ? where : where.substr(comma + 2));
}

std::string signature_of(const Finding& finding) {
  const bool error = finding.property == "error";
  return fmt::format("{}, {}, {}", finding.property, finding.execution,
                     error ? kind_of_error(finding.what) : kind_of_tensor(finding.where));
}

}  // namespace

nlohmann::json to_json(const Experiment& experiment) {
  nlohmann::json json{{"case", to_json(experiment.value)}, {"mode", ""}, {"injection", nullptr}};
  if (!experiment.injection) return json;
  json["mode"] = to_string(experiment.mode);
  json["injection"] = to_json(*experiment.injection);
  return json;
}

Experiment experiment_from_json(const JsonReader& reader) {
  reader.allow_only({"case", "mode", "injection"});
  Experiment experiment{case_from_json(reader.field("case"))};
  (void)reader.field("mode").text();
  if (reader.field("injection").is_null()) return experiment;
  experiment.injection = injection_from_json(reader.field("injection"));
  experiment.mode = mode_from_name(reader.field("mode").choice(names_of(graph_modes())));
  return experiment;
}

nlohmann::json to_json(const Observation& observation) {
  return {{"verdict", to_string(observation.verdict)},
          {"signature", observation.signature},
          {"findings", observation.findings}};
}

Observation observation_from_json(const JsonReader& reader) {
  Observation observation{
      verdict_from_json(reader.field("verdict")), reader.field("signature").text(), {}};
  for (const JsonReader& finding : reader.field("findings").elements())
    observation.findings.push_back(finding.text());
  return observation;
}

Observation observation_of(const Record& record) {
  Observation observation{record.verdict, "", {}};
  for (const Finding& finding : record.findings) {
    if (observation.signature.empty()) observation.signature = signature_of(finding);
    observation.findings.push_back(fmt::format("{}, {}: {}: {}", finding.property,
                                               finding.execution, finding.where, finding.what));
  }
  return observation;
}

Observation observation_of(Mode mode, const Injection& injection,
                           const std::vector<std::string>& findings) {
  if (findings.empty()) return {Verdict::kHolds, "", {}};
  const std::string& first = findings.front();
  // How a process ended is its kind; of a contract the name is.
  const std::string kind = first.starts_with("process: ") ? first : until(first, ":");
  return {Verdict::kViolated,
          fmt::format("{}, {}, {}", kind, to_string(mode), to_string(injection.point)), findings};
}

Observation observe(const Experiment& experiment,
                    const std::function<void(const std::vector<std::string>&)>& before) {
  device::initialise();
  if (!experiment.injection) return observation_of(execute(experiment.value));
  const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
  Scenario scenario(experiment.value, experiment.mode);
  const Trial trial = scenario.run_injected(*experiment.injection, before);
  if (trial.fired == 0 && trial.findings.empty())
    return {Verdict::kUnknown, "", {"the fault point was not reached: nothing was injected"}};
  return observation_of(experiment.mode, trial.injection, trial.findings);
}

Observation observation_of_end(const Experiment& experiment, const End& end,
                               const FatalTable& table) {
  const std::string finding = "process: it ended: " + kind_of_end(end, table);
  if (experiment.injection)
    return observation_of(experiment.mode, *experiment.injection, {finding});
  return {Verdict::kViolated, finding, {finding}};
}

}  // namespace slotgraph::fuzz

#include "fuzz/sweep/worker.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "core/device/device.h"
#include "core/exit_code.h"
#include "fuzz/fault/ends.h"
#include "fuzz/fault/scenario.h"
#include "fuzz/process/pool.h"
#include "fuzz/process/program.h"

namespace slotgraph::fuzz {
namespace {

// First, second and last number of each class. All places from which a failure ends the process for
// one known reason are one class.
std::vector<PointClass> classes_of(const std::vector<std::uint64_t>& digests,
                                   const FatalTable& table) {
  std::map<std::string, std::vector<std::uint64_t>> numbers;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const std::string fatal = table.find(Injector::instance().stacks().at(digests[i]));
    numbers[fatal.empty() ? fmt::format("{:016x}", digests[i]) : fatal].push_back(i + 1);
  }
  std::vector<PointClass> classes;
  for (const auto& [name, calls] : numbers) {
    std::set<std::uint64_t> picks{calls.front(), calls.back()};
    if (calls.size() > 1) picks.insert(calls[1]);
    classes.push_back({calls.size(), {picks.begin(), picks.end()}});
  }
  return classes;
}

TrialReply list_points(const Operation& operation, const FatalTable& table) {
  Injector& injector = Injector::instance();
  operation.prepare();
  injector.record();
  operation.run();
  injector.disarm();
  TrialReply reply;
  for (const auto& [point, digests] : injector.reached_points())
    reply.points.push_back({point.name, point.phase, classes_of(digests, table)});
  for (const Contract& contract : operation.contracts)
    for (const std::string& what : contract.broken())
      reply.findings.push_back(contract.name + ": " + what);
  return reply;
}

TrialReply run_trial(Scenario& scenario, const Injection& injection) {
  constexpr int most_stacks = 4;
  int told = 0;
  const Trial trial = scenario.run_injected(injection, [&](const std::vector<std::string>& stack) {
    tell(told++ < most_stacks ? nlohmann::json(stack) : nlohmann::json());
  });
  return {{}, trial.error, trial.findings};
}

}  // namespace

void to_json(nlohmann::json& json, const TrialRequest& request) {
  json = {{"mode", to_string(request.mode)}, {"injection", nullptr}};
  if (request.injection) json["injection"] = to_json(*request.injection);
}
void from_json(const nlohmann::json& json, TrialRequest& request) {
  const JsonReader reader(json, "request");
  request.mode = mode_from_name(reader.field("mode").text());
  const JsonReader injection = reader.field("injection");
  if (!injection.is_null()) request.injection = injection_from_json(injection);
}

Case case_of(const std::string& case_file) {
  return case_file.empty() ? reference_case() : read_case(case_file);
}

int run_sweep_worker(const Case& value) {
  die_with_parent();
  device::initialise();
  const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
  const FatalTable table = FatalTable::read("fuzz/fault/fatal_points.json");
  std::map<Mode, std::unique_ptr<Scenario>> scenarios;
  serve<TrialRequest>([&](const TrialRequest& request) {
    auto& scenario = scenarios[request.mode];
    if (!scenario) scenario = std::make_unique<Scenario>(value, request.mode);
    return request.injection ? run_trial(*scenario, *request.injection)
                             : list_points(scenario->operation(), table);
  });
  std::fflush(nullptr);
  ::_exit(kHolds);  // nothing is given back to a device that may be lost
}

}  // namespace slotgraph::fuzz

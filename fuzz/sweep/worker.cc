#include "fuzz/sweep/worker.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <set>

#include "core/device/device.h"
#include "core/exit_code.h"
#include "fuzz/execute/execute.h"
#include "fuzz/process/program.h"
#include "fuzz/sweep/result.h"
#include "fuzz/sweep/scenario.h"

namespace slotgraph::fuzz {
namespace {

void answer(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump());
  std::fflush(stdout);
}

// First, second and last number of each class: calls of a point from one place of the code. All
// places from which a failure ends the process for one known reason are one class.
nlohmann::json classes_of(const std::vector<std::uint64_t>& digests, const FatalTable& table) {
  std::map<std::string, std::vector<std::uint64_t>> numbers;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const std::string fatal = table.find(Injector::instance().stacks().at(digests[i]));
    numbers[fatal.empty() ? fmt::format("{:016x}", digests[i]) : fatal].push_back(i + 1);
  }
  nlohmann::json classes = nlohmann::json::array();
  for (const auto& [name, calls] : numbers) {
    std::set<std::uint64_t> picks{calls.front(), calls.back()};
    if (calls.size() > 1) picks.insert(calls[1]);
    classes.push_back({{"class", name}, {"count", calls.size()}, {"picks", picks}});
  }
  return classes;
}

void list_points(const Operation& operation, const FatalTable& table) {
  Injector& injector = Injector::instance();
  operation.prepare();
  injector.record();
  operation.run();
  injector.disarm();
  nlohmann::json points = nlohmann::json::array();
  for (const auto& [point, digests] : injector.reached_points()) {
    points.push_back(
        {{"point", point.name}, {"phase", point.phase}, {"classes", classes_of(digests, table)}});
  }
  nlohmann::json findings = nlohmann::json::array();
  for (const Contract& contract : operation.contracts)
    for (const std::string& what : contract.broken())
      findings.push_back(contract.name + ": " + what);
  answer({{"points", points}, {"findings", findings}});
}

// The first stacks; of later failures only that they happened.
void run_trial(Scenario& scenario, const Injection& injection) {
  constexpr int most_stacks = 4;
  int told = 0;
  const Trial trial = scenario.run_injected(injection, [&](const std::vector<std::string>& stack) {
    answer({{"note", told++ < most_stacks ? nlohmann::json(stack) : nlohmann::json()}});
  });
  answer({{"trial", {{"error", trial.error}, {"findings", trial.findings}}}});
  if (injection.fault == Fault::kSticky && trial.fired > 0) ::_exit(kHolds);
}

}  // namespace

Case case_of(const std::string& case_file) {
  return case_file.empty() ? reference_case() : read_case(case_file);
}

int run_sweep_worker(const Case& value) {
  die_with_parent();
  device::initialise();
  const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
  const FatalTable table = FatalTable::read("fuzz/sweep/fatal_points.csv");
  std::map<std::string, std::unique_ptr<Scenario>> scenarios;
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json request = nlohmann::json::parse(line);
    const std::string mode = request.at("mode");
    auto& scenario = scenarios[mode];
    if (!scenario) scenario = std::make_unique<Scenario>(value, mode_from_name(mode));
    if (request.at("injection").is_null()) {
      list_points(scenario->operation(), table);
    } else {
      run_trial(*scenario, injection_from_json(JsonReader(request.at("injection"), "injection")));
    }
  }
  return kHolds;
}

}  // namespace slotgraph::fuzz

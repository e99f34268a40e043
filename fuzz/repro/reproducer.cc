#include "fuzz/repro/reproducer.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <utility>

#include "core/device/device.h"
#include "core/error.h"
#include "core/exit_code.h"
#include "core/files.h"
#include "fuzz/fault/state.h"
#include "fuzz/process/program.h"
#include "fuzz/repro/version.h"

namespace slotgraph::fuzz {
namespace {

constexpr int kReproducerSchema = 1;
constexpr double kPatience = 300;  // seconds for one run

constexpr const char* kTest = R"(// Fails as long as the failure of this folder is there.
#include <gtest/gtest.h>

#include "core/json_reader.h"
#include "fuzz/repro/experiment.h"

namespace slotgraph::fuzz {{
namespace {{

constexpr const char* kExperiment = R"json({})json";

TEST(Reproducer, Holds) {{
  const nlohmann::json json = parse_json(kExperiment, "kExperiment");
  const Observation found = observe(experiment_from_json(JsonReader(json, "kExperiment")));
  EXPECT_EQ(found.signature, "") << nlohmann::json(found.findings).dump(1);
}}

}}  // namespace
}}  // namespace slotgraph::fuzz
)";

constexpr const char* kBuild = R"(exports_files([
    "experiment.json",
    "manifest.json",
    "reproducer_test.cc",
])

# By its name only: it fails as long as the failure is there.
cc_test(
    name = "reproducer_test",
    srcs = ["reproducer_test.cc"],
    tags = ["manual"],
    visibility = ["//visibility:public"],
    deps = [
        "//core/device",  # first: its runtime library must win over the wheel's
        "//core:json_reader",
        "//fuzz/repro:experiment",
        "//third_party:gtest_main",
    ],
)
)";

constexpr const char* kScript = R"sh(#!/bin/sh
# Run this anywhere inside a clone of slotgraph, or inside a packed folder (tools/gpu pack).
folder=$(dirname "$(realpath "$0")")
if [ -x ./run.sh ]; then exec ./run.sh repro "$folder" "$@"; fi
exec bazel run //:repro -- "$folder" "$@"
)sh";

nlohmann::json manifest_of(const Reproducer& reproducer) {
  const device::Capabilities device = device::capabilities();
  const Experiment& experiment = reproducer.experiment;
  return {{"schema", kReproducerSchema},
          {"slotgraph", kVersion},
          {"device", {{"name", device.name}, {"instruction_set", device.instruction_set}}},
          {"seed", experiment.value.seed},
          {"aslr", address_randomisation() ? "on" : "off"},
          {"case_digest", digest(experiment.value)},
          {"observation", to_json(reproducer.observation)}};
}

Observation observation_of(const Experiment& experiment, const Outcome<Observation>& outcome,
                           const FatalTable& table) {
  if (outcome.reply) return *outcome.reply;
  const Child::Answer& answer = outcome.answer;
  if (answer.timed_out) return {Verdict::kUnknown, "hung", {"no end after its time"}};
  End end{answer.code, answer.errors, static_cast<int>(answer.notes.size()), {}};
  if (!answer.notes.empty()) end.stack = answer.notes.back().get<std::vector<std::string>>();
  return observation_of_end(experiment, end, table);
}

}  // namespace

void write_reproducer(const std::string& folder, const Reproducer& reproducer) {
  const std::string experiment = to_json(reproducer.experiment).dump(1);
  write_file(folder + "/experiment.json", experiment + "\n");
  write_file(folder + "/manifest.json", manifest_of(reproducer).dump(1) + "\n");
  write_file(folder + "/reproducer_test.cc", fmt::format(fmt::runtime(kTest), experiment));
  write_file(folder + "/BUILD", kBuild);
  write_file(folder + "/repro.sh", kScript);
  std::filesystem::permissions(folder + "/repro.sh", std::filesystem::perms::owner_exec,
                               std::filesystem::perm_options::add);
}

Reproducer read_reproducer(const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  const nlohmann::json manifest = read_json_file(path);
  const JsonReader reader(manifest, path);
  const std::int64_t schema = reader.field("schema").integer();
  if (schema != kReproducerSchema) {
    throw Error(Error::kInput,
                {"F01", path + "/schema", fmt::to_string(schema), fmt::to_string(kReproducerSchema),
                 "use the version of slotgraph that wrote the folder"});
  }
  if (const std::string version = reader.field("slotgraph").text(); version != kVersion) {
    throw Error(
        Error::kInput,
        {"F06", path + "/slotgraph", "version " + version,
         std::string("version ") + kVersion + ", which is this one",
         "check out the sources of that version to see the failure again; to ask whether this "
         "version has it, set the field to this version"});
  }
  const nlohmann::json json = read_json_file(folder + "/experiment.json");
  Observation observed = observation_from_json(reader.field("observation"));
  Experiment experiment = experiment_from_json(JsonReader(json, folder + "/experiment.json"));
  const std::string expected = reader.field("case_digest").text();
  if (const std::string found = digest(experiment.value); found != expected) {
    throw Error(Error::kInput,
                {"F07", folder + "/experiment.json", "a case with digest " + found,
                 "the one that the manifest names, " + expected,
                 "undo what was changed by hand, or run the changed case by `--case`"});
  }
  return {std::move(experiment), std::move(observed)};
}

void to_json(nlohmann::json& json, const ObserveRequest& request) {
  json = {{"experiment", to_json(request.experiment)}, {"record", request.record}};
}
void from_json(const nlohmann::json& json, ObserveRequest& request) {
  const JsonReader reader(json, "request");
  request = {experiment_from_json(reader.field("experiment")), reader.field("record").text()};
}
void to_json(nlohmann::json& json, const Observation& observation) { json = to_json(observation); }
void from_json(const nlohmann::json& json, Observation& observation) {
  observation = observation_from_json(JsonReader(json, "observer"));
}

Observers::Observers(const std::string& program, int count)
    : table_(FatalTable::read("fuzz/fault/fatal_points.json")),
      pool_({program, "--observe"}, count, errors_.path(), kPatience) {
  for (const std::string& warning : table_.warnings()) fmt::print(stderr, "warning: {}\n", warning);
}

std::vector<Observation> Observers::observe(const std::vector<Experiment>& experiments,
                                            const std::string& record) {
  std::vector<Observation> result(experiments.size());
  std::map<std::size_t, std::size_t> given;  // which experiment each worker has
  std::size_t next = 0;
  pool_.run(
      [&](std::size_t worker) -> std::optional<ObserveRequest> {
        if (next == experiments.size()) return std::nullopt;
        given[worker] = next;
        return ObserveRequest{experiments[next++], record};
      },
      [&](std::size_t worker, const ObserveRequest& request, const Outcome<Observation>& outcome) {
        result[given[worker]] = observation_of(request.experiment, outcome, table_);
        // A device that is lost is so for good.
        const auto& injection = request.experiment.injection;
        return injection && traits(injection->fault).loses_device ? After::kRetire : After::kKeep;
      });
  return result;
}

Observation confirm(const std::string& program, const std::string& folder,
                    const Reproducer& failure) {
  Reproducer written = failure;
  write_reproducer(folder, written);
  Observation again = Observers(program).observe({failure.experiment}, folder)[0];
  if (again.signature != failure.observation.signature) {
    written.observation.verdict = Verdict::kFlaky;
    written.observation.findings.push_back(
        again.signature.empty() ? "a second run in a fresh process held"
                                : "a second run in a fresh process found: " + again.signature);
    write_reproducer(folder, written);
  }
  return again;
}

int run_observer() {
  die_with_parent();
  serve<ObserveRequest>([](const ObserveRequest& request) {
    bool logged = request.record.empty();
    const auto write_log = [&] {
      if (std::exchange(logged, true)) return;
      std::string log;
      for (const std::string& call : device::call_log()) log += call + "\n";
      write_file(request.record + "/events.log", log);
    };
    const Observation observation =
        observe(request.experiment, [&](const std::vector<std::string>& stack) {
          write_log();
          tell(stack);
        });
    write_log();
    if (!request.record.empty())
      write_file(request.record + "/allocator.txt", allocator_topology());
    return observation;
  });
  return kHolds;
}

}  // namespace slotgraph::fuzz

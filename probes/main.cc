#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/exit_code.h"
#include "core/files.h"
#include "core/graph/calling_thread.h"
#include "core/program.h"
#include "probes/probe.h"

namespace slotgraph::probes {
namespace {

constexpr const char* kDescription =
    "Stand-alone experiments on the slot runtime. A probe builds the smallest module that shows "
    "one "
    "promise of\nthe contract (core/graph/callables.h), runs it eagerly, with native graphs and in "
    "every slot mode, and prints\nwhat it found beside what the contract says.";

constexpr const char* kFooter =
    "Examples:\n"
    "  bazel run //:probes -- list                     names, and what each probe shows\n"
    "  bazel run //:probes -- alias                    one probe\n"
    "  bazel run //:probes -- all --out /tmp/probes    all of them, records to a folder\n"
    "Each probe writes DIR/NAME.jsonl: a line for each row, with schema, probe, question, "
    "execution, "
    "found,\nexpected and verdict (holds, violated or unknown).\n"
    "Exit codes: 0 all rows hold, 1 a row is violated, 2 a row is unknown, 64 wrong flag or "
    "unknown "
    "probe,\n70 internal error, 74 a file cannot be written.";

// Levenshtein's distance: edits that turn one name into the other.
std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// Nearest first; one that shares nothing with what was typed is no help.
std::string near_names(const std::string& typed) {
  std::multimap<std::size_t, std::string> by_distance;
  std::vector<std::string> names{"all", "list"};
  for (const Probe& probe : all_probes()) names.push_back(probe.name);
  for (const std::string& name : names) {
    const std::size_t distance = edits(typed, name);
    const bool part = typed.size() > 1 && name.find(typed) != std::string::npos;
    if (part || distance <= 1 + name.size() / 3) by_distance.emplace(distance, name);
  }
  std::string text;
  for (const auto& [distance, name] : by_distance) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "see `bazel run //:probes -- list`" : "did you mean: " + text + "?";
}

ExitCode run_probe(const Probe& probe, const std::string& folder) {
  const std::vector<Row> rows = probe.run();
  fmt::print("{}", table(probe, rows));
  const std::string path = folder + "/" + probe.name + ".jsonl";
  write_file(path, records(probe, rows));
  fmt::print("records: {}\n\n", path);
  return exit_code_of(count(rows));
}

int run(int argc, char** argv) {
  CLI::App app(kDescription, "probes");
  std::string name, out = "slotgraph-out/probes";
  app.add_option("PROBE", name, "list, all, or the name of a probe")->required();
  app.add_option("--out", out, "folder for the records")->capture_default_str();
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kHolds : kUsage;
  }
  std::vector<Probe> chosen;
  for (const Probe& probe : all_probes()) {
    if (name == "list") fmt::print("{:<10}{}\n", probe.name, probe.shows);
    if (name == "all" || name == probe.name) chosen.push_back(probe);
  }
  if (name == "list") return kHolds;
  if (chosen.empty()) {
    fmt::print(stderr, "probes: no probe is named {}; {}\n", name, near_names(name));
    return kUsage;
  }
  device::initialise();
  // Graphs are not captured on the default stream; backwards stay on this thread, so that memory is
  // accounted for when they return.
  const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
  const CallingThreadGuard calling_thread;
  ExitCode code = kHolds;
  for (const Probe& probe : chosen) {
    code = worse(code, run_probe(probe, from_caller(out)));
  }
  return code;
}

}  // namespace
}  // namespace slotgraph::probes

int main(int argc, char** argv) {
  return slotgraph::run_program("probes", argc, argv, slotgraph::probes::run);
}

#include "fuzz/sweep/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "core/exit_code.h"
#include "core/files.h"

namespace slotgraph::fuzz {
namespace {

constexpr const char* kDescription =
    "Makes every fault point of a case fail, one run at a time, and checks after each failure that "
    "the error names it,\n"
    "that allocator, pools, graphs and process state are what they were, that earlier graphs still "
    "replay right, and that\n"
    "the same case and another one can be captured and replayed in the same process.\n"
    "A fault point is a runtime call or a named step of the runtime, in a phase, with its number: "
    "cudaMalloc@warm_up#3.";

constexpr const char* kFooter =
    "Examples:\n"
    "  bazel run //:sweep                                       reference case, every class, "
    "once\n"
    "  bazel run //:sweep -- --fault persistent                 from then on\n"
    "  bazel run //:sweep -- --fault pair --mode checkpoint     a second failure while the "
    "first is undone\n"
    "  bazel run //:sweep -- --points 'owner_detach'            a named step\n"
    "  bazel run //:sweep -- --points 'cuda*@capture_*' --every call CASE.json\n"
    "Exit codes: 0 everything holds, 1 a contract is broken, 2 unknown (a worker hung), 3 stopped "
    "on request,\n"
    "64 wrong flag or input, 70 internal error, 74 a file cannot be written.";

}  // namespace

bool parse(int argc, char** argv, SweepOptions& options, int& exit_code) {
  CLI::App app(kDescription, "sweep");
  std::vector<std::string> modes = names_of(options.modes);
  std::string fault = to_string(options.fault);
  app.footer(kFooter);
  app.add_option("case", options.case_file,
                 "case file (default: the reference case, 2 variants x "
                 "2 chunks x 2 layers x 4 slots)");
  app.add_option("--mode", modes, "sharing modes")
      ->check(CLI::IsMember(names_of(graph_modes())))
      ->capture_default_str();
  std::vector<std::string> faults;
  std::string meanings;
  for (const FaultTraits& fault : kFaults) {
    faults.emplace_back(fault.name);
    meanings += fmt::format("{}: {}; ", fault.name, fault.meaning);
  }
  faults.emplace_back("pair");
  app.add_option("--fault", fault,
                 meanings + "pair: once, and another point fails while the failure is undone")
      ->check(CLI::IsMember(faults))
      ->capture_default_str();
  app.add_option("--points", options.points, "pattern of names, or NAME@PHASE")
      ->capture_default_str();
  app.add_option("--every", options.every,
                 "class: first, second and last call of each class (point, phase, mode, call "
                 "stack); call: every call")
      ->check(CLI::IsMember({"class", "call"}))
      ->capture_default_str();
  auto* const sample = app.add_option("--sample", options.sample,
                                      "most first failures of each mode, spread evenly over all of "
                                      "them; 0: all (default: 0, with --fault pair 200)")
                           ->check(CLI::Range(0, 1'000'000));
  app.add_option("--rules", options.rules,
                 "a JSON file: a list of {\"point\", \"phase\", \"nth\", \"fault\", \"second\"}; "
                 "runs these and nothing else");
  app.add_option("--jobs", options.jobs, "worker processes")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--out", options.out, "folder for summary.json and trials.jsonl")
      ->capture_default_str();
  app.add_flag("--list", options.list, "print the names of all points and phases");
  app.add_flag("--worker", options.worker)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? kHolds : kUsage;
    return false;
  }
  options.modes.clear();
  for (const std::string& mode : modes) options.modes.push_back(mode_from_name(mode));
  options.pair = fault == "pair";
  if (options.pair && sample->count() == 0) options.sample = 200;
  for (const FaultTraits& each : kFaults)
    if (each.name == fault) options.fault = each.fault;
  options.out = from_caller(options.out);
  if (!options.case_file.empty()) options.case_file = from_caller(options.case_file);
  if (!options.rules.empty()) options.rules = from_caller(options.rules);
  return true;
}

}  // namespace slotgraph::fuzz

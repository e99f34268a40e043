#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "core/exit_code.h"
#include "core/files.h"
#include "core/program.h"
#include "fuzz/process/program.h"
#include "fuzz/repro/reproducer.h"

namespace slotgraph::fuzz {
namespace {

int judge(const std::string& folder, const Reproducer& reproducer, const Observation& found) {
  const std::string& expected = reproducer.observation.signature;
  fmt::print("expected: {}\nfound:    {}\n", expected,
             found.signature.empty() ? "nothing: it holds" : found.signature);
  for (const std::string& finding : found.findings) fmt::print("  {}\n", finding);
  if (found.verdict == Verdict::kUnknown) {
    fmt::print("unknown\n");
    return kUnknown;
  }
  if (found.verdict == Verdict::kHolds) {
    fmt::print("not reproduced\n");
    return kHolds;
  }
  fmt::print("{}\nsmaller: {} {}\n",
             found.signature == expected ? "reproduced" : "another failure than the recorded one",
             command_of("shrink"), folder);
  return kViolated;
}

int run(int argc, char** argv) {
  std::string folder;
  bool observing = false;
  CLI::App app("Runs a reproducer again: a folder that the campaign or the sweep has written.",
               "repro");
  app.footer(
      "Example:\n  bazel run //:repro -- slotgraph-out/repro/1-17\n"
      "Exit codes: 0 the failure is gone, 1 it is there (or another one), 2 unknown (nothing was "
      "injected, no\n"
      "end), 64 wrong flag or folder, "
      "70 internal\n"
      "error, 74 a file cannot be written.");
  app.add_option("folder", folder, "folder of the reproducer");
  app.add_flag("--observe", observing)->group("");
  try {
    app.parse(argc, argv);
    if (!observing && folder.empty()) throw CLI::RequiredError("folder");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kHolds : kUsage;
  }
  enter_data_folder();
  if (observing) return run_observer();
  folder = from_caller(folder);
  const Reproducer reproducer = read_reproducer(folder);
  const Observation found = Observers(program_path("repro")).observe({reproducer.experiment})[0];
  return judge(folder, reproducer, found);
}

}  // namespace
}  // namespace slotgraph::fuzz

int main(int argc, char** argv) {
  slotgraph::fuzz::prepare_process(argv);
  return slotgraph::run_program("repro", argc, argv, slotgraph::fuzz::run);
}

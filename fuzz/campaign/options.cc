#include "fuzz/campaign/options.h"

#include <CLI/CLI.hpp>

#include "core/files.h"

namespace slotgraph::fuzz {
namespace {

constexpr const char* kDescription =
    "Compares eager, native-graph and slot-graph execution byte for byte on plans of real models.\n"
    "Each case is one plan, one schedule of microbatches and one model, drawn from the seed; case "
    "i of a seed is the\n"
    "same on every machine and for every number of jobs.";

constexpr const char* kFooter =
    "Examples:\n"
    "  bazel run //:campaign                                      about a minute, seed 1\n"
    "  bazel run //:campaign -- --seed 7 --seconds 600            other cases, ten minutes\n"
    "  bazel run //:campaign -- --filter qwen3-235b --cases 20    twenty cases of one model\n"
    "  bazel run //:campaign -- --case out/cases/1-17.json        one case again\n"
    "Exit codes: 0 all cases hold, 1 a case is violated, 2 a case is unknown (its worker died), 3 "
    "stopped on request,\n"
    "64 wrong flag or input, 70 internal error, 74 a file cannot be written.";

}  // namespace

bool parse(int argc, char** argv, Options& options, int& exit_code) {
  CLI::App app(kDescription, "campaign");
  app.footer(kFooter);
  app.add_option("--seed", options.seed, "seed of the campaign")->capture_default_str();
  app.add_option("--cases", options.cases, "number of cases; 0: until the seconds are over")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "start no case after this time; 0: no limit")
      ->check(CLI::Range(0.0, 1e7))
      ->capture_default_str();
  std::string scale = "small";
  app.add_option("--scale", scale,
                 "size of cases: small (a CPU's), large (a GPU's: hidden 1024 to 4096, captures "
                 "that serve many schedules)")
      ->check(CLI::IsMember({"small", "large"}))
      ->take_last()
      ->capture_default_str();
  std::string scheduler = "greedy";
  app.add_option("--scheduler", scheduler,
                 "of the public batches: greedy, as they are; balanced, with shorter steps")
      ->check(CLI::IsMember({"greedy", "balanced"}))
      ->capture_default_str();
  app.add_option("--filter", options.filter, "only plans whose name contains this text");
  app.add_option("--jobs", options.jobs, "worker processes")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--again", options.again,
                 "so many cases, evenly spread, run once more, each in a process of its own, and "
                 "must show the same bits")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  app.add_option("--case", options.case_file, "run this case file and nothing else");
  app.add_option("--out", options.out,
                 "folder for records, summary.json and failing cases (default: ./slotgraph-out)");
  app.add_flag("--worker", options.worker)->group("");
  try {
    app.parse(argc, argv);
    if (options.cases == 0 && options.seconds == 0) {
      throw CLI::ValidationError("--cases 0 with --seconds 0", "would never end; give one of them");
    }
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? kHolds : kUsage;
    return false;
  }
  options.large = scale == "large";
  options.balanced = scheduler == "balanced";
  options.out = from_caller(options.out.empty() ? "slotgraph-out" : options.out);
  if (!options.case_file.empty()) options.case_file = from_caller(options.case_file);
  return true;
}

}  // namespace slotgraph::fuzz

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "core/exit_code.h"
#include "core/files.h"
#include "core/program.h"
#include "fuzz/process/program.h"
#include "fuzz/repro/reproducer.h"
#include "fuzz/shrink/shrink.h"

namespace slotgraph::fuzz {
namespace {

struct Options {
  std::string folder;
  int budget = 1000;
  int jobs = 2;
};

bool parse(int argc, char** argv, Options& options, int& exit_code) {
  CLI::App app(
      "Makes the experiment of a reproducer smaller as long as it shows the same failure: fewer "
      "variants,\n"
      "microbatches, layers and faults, smaller tensors, plain values everywhere.",
      "shrink");
  app.footer(
      "Example:\n  bazel run //:shrink -- slotgraph-out/repro/1-17\n"
      "Writes FOLDER/shrunk, a reproducer, after every accepted step.\n"
      "Exit codes: 0 the smallest form is reached, 2 the budget ended first or the failure does "
      "not show, 3 stopped\n"
      "on request, 64 wrong flag or folder, 70 internal error, 74 a file cannot be written.");
  app.add_option("folder", options.folder, "folder of the reproducer")->required();
  app.add_option("--budget", options.budget, "most runs")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--jobs", options.jobs, "runs at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? kHolds : kUsage;
    return false;
  }
  options.folder = from_caller(options.folder);
  return true;
}

std::string size_of(const Experiment& experiment) {
  const Case& value = experiment.value;
  return fmt::format("{} variants, {} microbatches, {} layers, {} branches, hidden {}",
                     value.plan.variants(), value.schedule.variants.size(), value.plan.layers(),
                     value.plan.slots.size(), value.hidden);
}

int run(int argc, char** argv) {
  Options options;
  int code = kInternal;
  if (!parse(argc, argv, options, code)) return code;
  enter_data_folder();
  stop_on_request();
  const Reproducer reproducer = read_reproducer(options.folder);
  const std::string& signature = reproducer.observation.signature;
  const std::string target = options.folder + "/shrunk";
  Observers observers(program_path("repro"), options.jobs);
  const Judge judge = [&](const std::vector<Experiment>& all) {
    std::vector<std::string> signatures;
    for (const Observation& found : observers.observe(all)) signatures.push_back(found.signature);
    return signatures;
  };
  fmt::print("failure: {}\nfrom: {}\n", signature, size_of(reproducer.experiment));
  if (const std::string found = judge({reproducer.experiment})[0]; found != signature) {
    fmt::print("the failure does not show: found {}\n", found.empty() ? "that it holds" : found);
    return kUnknown;
  }
  ShrinkOptions shrinking;
  shrinking.budget = options.budget;
  shrinking.at_once = options.jobs;
  shrinking.stop = stop_requested;
  shrinking.accepted = [&](const Reduction& accepted, int runs) {
    fmt::print("{:>5} runs: {}\n", runs, accepted.what);
    std::fflush(stdout);
    write_reproducer(target, {accepted.experiment, reproducer.observation});
  };
  const Shrunk shrunk = shrink(reproducer.experiment, signature, judge, shrinking);
  fmt::print("to: {}, after {} steps and {} runs{}\n", size_of(shrunk.experiment), shrunk.steps,
             shrunk.runs,
             stop_requested()   ? " (stopped)"
             : shrunk.canonical ? ""
                                : " (not the smallest: the budget is spent)");
  if (stop_requested()) return kStopped;
  const Reproducer smallest{shrunk.experiment, reproducer.observation};
  if (confirm(program_path("repro"), target, smallest).signature != signature) {
    fmt::print("it does not come again in a fresh process: flaky\n");
    return kUnknown;
  }
  fmt::print("reproduce: {} {}\n", command_of("repro"), target);
  return shrunk.canonical ? kHolds : kUnknown;
}

}  // namespace
}  // namespace slotgraph::fuzz

int main(int argc, char** argv) {
  slotgraph::fuzz::prepare_process(argv);
  return slotgraph::run_program("shrink", argc, argv, slotgraph::fuzz::run);
}

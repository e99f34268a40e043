#include "probes/conformance/options.h"

#include <CLI/CLI.hpp>
#include <map>

#include "core/exit_code.h"
#include "core/files.h"

namespace slotgraph::conformance {
namespace {

constexpr const char* kDescription =
    "Random programs over libtorch's CUDA caching allocator, on the device that is built: the "
    "emulation, or with\n--config=cuda a GPU. Logs of what the allocator answers, does and calls "
    "are equal on all devices, byte for byte.";

constexpr const char* kFooter =
    "Examples:\n"
    "  bazel run //:conformance                       about ten seconds\n"
    "  bazel run //:conformance -- --compare DIR      with an earlier "
    "run's folder\n"
    "  bazel run --config=cuda //:conformance -- --programs 3400 --jobs "
    "16 --full 17 \\\n"
    "      --compact --out probes/conformance/golden                           makes the golden "
    "folder\n"
    "DIR gets programs-POLICY.jsonl (one line for each program), digests-POLICY.txt (the first 16 "
    "digits of each\nlog's SHA-256), logs-POLICY.txt (the first logs) and summary.json.\n"
    "Exit codes: 0 everything is equal and came back, 1 something differs, 2 unknown (no device, a "
    "worker died),\n3 stopped on request, 64 wrong flag or input, 70 internal error, 74 a file "
    "cannot be read or written.";

}  // namespace

bool parse(int argc, char** argv, Options& options, int& exit_code) {
  CLI::App app(kDescription, "allocator_programs");
  app.footer(kFooter);
  std::map<std::string, std::vector<Policy>> policies{
      {"all", {kPolicies.begin(), kPolicies.end()}}};
  for (const Policy policy : kPolicies) policies[std::string(name_of(policy))] = {policy};
  std::string addresses = "all";
  app.add_option("--programs", options.programs, "number of programs for each policy")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--operations", options.operations, "operations in each program")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--seed", options.seed,
                 "seed: program i of a seed and a policy is always the same")
      ->capture_default_str();
  app.add_option("--addresses", addresses,
                 "where new segments lie: ascending, descending, seeded, or all three")
      ->check(CLI::IsMember(policies))
      ->capture_default_str();
  app.add_option("--jobs", options.jobs, "worker processes")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--out", options.out,
                 "folder for the results (default: ./slotgraph-out/conformance)");
  app.add_option("--full", options.full, "how many logs of each policy are kept whole")
      ->capture_default_str();
  app.add_flag("--compact", options.compact, "no programs-POLICY.jsonl");
  app.add_option("--compare", options.compare,
                 "folder of an earlier run of the same seed: every program has to be there, and be "
                 "equal");
  app.add_flag("--worker", options.worker)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? kHolds : kUsage;
    return false;
  }
  options.policies = policies.at(addresses);
  options.out = from_caller(options.out.empty() ? "slotgraph-out/conformance" : options.out);
  if (!options.compare.empty()) options.compare = from_caller(options.compare);
  return true;
}

}  // namespace slotgraph::conformance

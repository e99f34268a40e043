#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/exit_code.h"
#include "core/program.h"
#include "fuzz/process/program.h"
#include "probes/conformance/compare.h"
#include "probes/conformance/driver.h"
#include "probes/conformance/options.h"
#include "probes/conformance/results.h"
#include "probes/conformance/worker.h"

namespace slotgraph::conformance {
namespace {

void print(const char* title, const Counts& counts) {
  fmt::print("{}\n", title);
  for (const auto& [name, count] : counts) fmt::print("  {:<22}{:>12}\n", name, count);
}

int run(int argc, char** argv) {
  Options options;
  int code = kInternal;
  if (!parse(argc, argv, options, code)) return code;
  if (options.worker) return run_worker(options);
  std::optional<Golden> golden;
  std::size_t logs = options.full;
  if (!options.compare.empty()) {
    golden = read_golden(options);
    for (const auto& [policy, kept] : golden->logs) logs = std::max(logs, kept.size());
  }
  Results results;
  code = drive(options, logs, std::filesystem::read_symlink("/proc/self/exe"), results);
  if (code != kHolds) return code;
  write_folder(options, results);
  fmt::print("device {} ({})\n", results.device, results.instruction_set);
  print("totals", results.totals());
  print("kinds of operations", results.kinds);
  print("situations", results.situations);
  fmt::print("results: {}\n", options.out);
  if (!golden) return kHolds;
  const Comparison comparison = compare(results, *golden);
  fmt::print("\n{}", comparison.text);
  return comparison.equal ? kHolds : kViolated;
}

}  // namespace
}  // namespace slotgraph::conformance

int main(int argc, char** argv) {
  slotgraph::fuzz::prepare_process(argv);
  return slotgraph::run_program("allocator_programs", argc, argv, slotgraph::conformance::run);
}

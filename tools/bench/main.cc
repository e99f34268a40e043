#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "core/device/device.h"
#include "core/exit_code.h"
#include "core/files.h"
#include "core/graph/calling_thread.h"
#include "core/program.h"
#include "fuzz/process/program.h"
#include "tools/bench/sections.h"

namespace slotgraph::bench {
namespace {

constexpr const char* kDescription =
    "Time and memory of slot graphs, against native graphs in PyTorch's arrangement (one pool a\n"
    "variant) and eager execution. Compare ratios: machines differ.";
constexpr const char* kFooter =
    "Exit codes: 0 measured, 1 a gradient is wrong or memory has not come back, 2 no device, 64 "
    "wrong flag,\n70 internal error, 74 a file cannot be written.";

struct Options {
  std::string scale = "small";
  std::string only;
  std::string out;
};

// Large: the work on which the published runtime was measured, and attention. Small: what a CPU can
// do of it.
std::vector<Work> works(bool large) {
  if (!large) {
    const Work small{.hidden = 256, .dtype = at::kFloat, .tokens = 512};
    Work attention = small;
    attention.block = "attention";
    return {small, attention};
  }
  std::vector<Work> all;
  for (const std::int64_t hidden : {1024, 2048}) {
    for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat}) {
      for (const std::vector<int>& cp_sizes :
           {std::vector<int>{1}, std::vector<int>{2, 1}, std::vector<int>{8, 4, 2, 1}})
        all.push_back({.hidden = hidden, .dtype = dtype, .cp_sizes = cp_sizes});
    }
  }
  all.push_back({.equal_tokens = true});
  all.push_back({.block = "attention", .tokens = 1024});
  return all;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app(kDescription, "bench");
  app.footer(kFooter);
  app.add_option("--scale", options.scale, "small (a CPU's) or large (a GPU's)")
      ->check(CLI::IsMember({"small", "large"}))
      ->take_last()
      ->capture_default_str();
  app.add_option("--only", options.only, "one section instead of all")
      ->check(
          CLI::IsMember({"replay", "capture", "memory", "gradients", "restore", "banks", "many"}));
  app.add_option("--out", options.out, "folder of bench.jsonl and bench.md (default: none)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kHolds : kUsage;
  }
  device::initialise();
  device::configure({.addresses = device::Simulation::Addresses::kDriver});
  const device::Capabilities device = device::capabilities();
  const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
  const CallingThreadGuard calling_thread;
  Report report;
  bool right = true;
  const auto wanted = [&](const char* section) {
    return options.only.empty() || options.only == section;
  };
  const std::vector<Work> all = works(options.scale == "large");
  if (wanted("gradients")) {
    for (const Work& work : all) right = check_gradients(work, report) && right;
  }
  if (wanted("memory")) {
    for (const Work& work : all) measure_memory(work, report);
  }
  if (wanted("capture")) {
    for (const Work& work : all) measure_capture(work, report);
  }
  if (wanted("restore")) measure_restore(report);
  if (wanted("banks")) measure_banks(all.front(), report);
  if (wanted("many")) right = measure_many(report) && right;
  if (wanted("replay")) {
    for (const Work& work : all) measure_replay(work, report);
  }
  if (!options.out.empty())
    report.write(from_caller(options.out),
                 fmt::format("{} {}", device.name, device.instruction_set));
  return right ? kHolds : kViolated;
}

}  // namespace
}  // namespace slotgraph::bench

int main(int argc, char** argv) {
  slotgraph::fuzz::prepare_process(argv);
  return slotgraph::run_program("bench", argc, argv, slotgraph::bench::run);
}

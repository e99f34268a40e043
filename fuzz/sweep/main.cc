#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "core/exit_code.h"
#include "fuzz/process/program.h"
#include "fuzz/sweep/injector.h"
#include "fuzz/sweep/options.h"
#include "fuzz/sweep/runner.h"
#include "fuzz/sweep/worker.h"

namespace slotgraph::fuzz {
namespace {

int run(int argc, char** argv) {
  SweepOptions options;
  int code = kInternal;
  if (!parse(argc, argv, options, code)) return code;
  if (options.list) {
    fmt::print("points:\n  {}\nphases:\n  {}\n", fmt::join(point_names(), "\n  "),
               fmt::join(phase_names(), "\n  "));
    return kHolds;
  }
  const Case value = case_of(options.case_file);  // before any worker is started
  enter_data_folder();
  if (options.worker) return run_sweep_worker(value);
  return run_sweep(options, value, std::filesystem::read_symlink("/proc/self/exe"));
}

}  // namespace
}  // namespace slotgraph::fuzz

int main(int argc, char** argv) {
  return slotgraph::fuzz::run_program("sweep", argc, argv, slotgraph::fuzz::run);
}

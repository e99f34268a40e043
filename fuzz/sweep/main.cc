#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "core/error.h"
#include "core/exit_code.h"
#include "core/models/blocks.h"
#include "core/program.h"
#include "fuzz/fault/injector.h"
#include "fuzz/process/program.h"
#include "fuzz/sweep/options.h"
#include "fuzz/sweep/runner.h"
#include "fuzz/sweep/worker.h"

namespace slotgraph::fuzz {
namespace {

// Modes that copy refuse blocks whose saves no hook sees: there is nothing to sweep.
void leave_out_modes(const Case& value, SweepOptions& options) {
  for (const LayerCase& layer : value.layers) {
    if (!find_block(layer.block).hides_saves) continue;
    const auto copies = [](Mode mode) { return traits(mode).copies; };
    if (std::erase_if(options.modes, copies) > 0) {
      fmt::print(stderr, "sweep: modes that copy refuse block {} (K09): left out\n", layer.block);
    }
  }
  if (!options.modes.empty()) return;
  throw Error(Error::kInput,
              {"F10", "--mode", "modes that copy only", "placement or native for this case", ""});
}

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
  leave_out_modes(value, options);
  enter_data_folder();
  if (options.worker) return run_sweep_worker(value);
  return run_sweep(options, value, std::filesystem::read_symlink("/proc/self/exe"));
}

}  // namespace
}  // namespace slotgraph::fuzz

int main(int argc, char** argv) {
  slotgraph::fuzz::prepare_process(argv);
  return slotgraph::run_program("sweep", argc, argv, slotgraph::fuzz::run);
}

#include <filesystem>

#include "core/models/blocks.h"
#include "core/program.h"
#include "fuzz/campaign/campaign.h"
#include "fuzz/campaign/options.h"
#include "fuzz/campaign/worker.h"
#include "fuzz/process/program.h"

namespace slotgraph::fuzz {
namespace {

int run(int argc, char** argv) {
  Options options;
  int code = kInternal;
  if (!parse(argc, argv, options, code)) return code;
  enter_data_folder();
  if (!options.case_file.empty()) return run_case(options);
  const Sources sources =
      read_sources("core/plan/testdata", "core/order/testdata/schedules.jsonl", options.filter,
                   block_names(), options.balanced ? Scheduler::kBalanced : Scheduler::kGreedy);
  if (options.worker) return run_worker(options, sources);
  return run_campaign(options, sources, std::filesystem::read_symlink("/proc/self/exe"));
}

}  // namespace
}  // namespace slotgraph::fuzz

int main(int argc, char** argv) {
  slotgraph::fuzz::prepare_process(argv);
  return slotgraph::run_program("campaign", argc, argv, slotgraph::fuzz::run);
}

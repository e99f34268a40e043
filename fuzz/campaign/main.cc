#include <fmt/format.h>
#include <sys/personality.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "fuzz/campaign/campaign.h"
#include "fuzz/campaign/options.h"
#include "fuzz/campaign/worker.h"

namespace slotgraph::fuzz {
namespace {

// The allocator orders some of its work by host addresses, so a run without address randomisation
// repeats exactly.
void run_without_address_randomisation(char** argv) {
  const int now = ::personality(0xffffffff);
  if (now & ADDR_NO_RANDOMIZE || std::getenv("SLOTGRAPH_ASLR_REFUSED")) return;
  if (::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) >= 0)
    ::execv("/proc/self/exe", argv);
  fmt::print(stderr,
             "warning: address randomisation cannot be switched off here; runs may differ in "
             "allocation order\n");
  ::setenv("SLOTGRAPH_ASLR_REFUSED", "1", 1);
}

// Every error by its rule: bad input, files, or a defect of the harness.
int exit_code(const Error& error) {
  if (error.rule() == "F03") return kInputOutput;
  const char kind = error.rule()[0];
  return kind == 'J' || kind == 'F' || kind == 'P' || kind == 'M' || kind == 'O' ? kUsage
                                                                                 : kInternal;
}

// Plans and schedules lie beside the program, where Bazel puts them; `bazel run` starts it there
// already.
void enter_data_folder() {
  if (std::filesystem::exists("core/plan/testdata")) return;
  const std::string folder =
      std::filesystem::read_symlink("/proc/self/exe").string() + ".runfiles/slotgraph";
  if (std::filesystem::exists(folder)) std::filesystem::current_path(folder);
}

int run(int argc, char** argv) {
  Options options;
  int code = kInternal;
  if (!parse(argc, argv, options, code)) return code;
  enter_data_folder();
  if (!options.case_file.empty()) return run_case(options);
  const Sources sources =
      read_sources("core/plan/testdata", "core/order/testdata/schedules.jsonl", options.filter);
  if (options.worker) return run_worker(options, sources);
  return run_campaign(options, sources, std::filesystem::read_symlink("/proc/self/exe"));
}

}  // namespace
}  // namespace slotgraph::fuzz

int main(int argc, char** argv) {
  namespace fuzz = slotgraph::fuzz;
  fuzz::run_without_address_randomisation(argv);
  try {
    return fuzz::run(argc, argv);
  } catch (const slotgraph::Error& error) {
    fmt::print(stderr, "campaign: {}\n", error.what());
    return fuzz::exit_code(error);
  } catch (const std::exception& error) {
    fmt::print(stderr, "campaign: internal error: {}\n", error.what());
    return slotgraph::kInternal;
  }
}

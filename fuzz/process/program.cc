#include "fuzz/process/program.h"

#include <fmt/format.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

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

volatile std::sig_atomic_t stop_signal = 0;
void request_stop(int) { stop_signal = 1; }

}  // namespace

void stop_on_request() {
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
}

bool stop_requested() { return stop_signal != 0; }

bool address_randomisation() { return (::personality(0xffffffff) & ADDR_NO_RANDOMIZE) == 0; }

void enter_data_folder() {
  if (std::filesystem::exists("core/plan/testdata")) return;
  const std::string folder =
      std::filesystem::read_symlink("/proc/self/exe").string() + ".runfiles/slotgraph";
  if (std::filesystem::exists(folder)) std::filesystem::current_path(folder);
}

std::string command_of(const std::string& name) {
  return std::getenv("SLOTGRAPH_PACKED") ? "./run.sh " + name : "bazel run //:" + name + " --";
}

TemporaryFolder::TemporaryFolder()
    : path_((std::filesystem::temp_directory_path() / "slotgraph-XXXXXX").string()) {
  if (!::mkdtemp(path_.data()))
    throw std::system_error(errno, std::generic_category(), "no folder " + path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // what cannot be removed stays in the system's temporary folder
  std::filesystem::remove_all(path_, ignored);
}

void die_with_parent() { (void)::prctl(PR_SET_PDEATHSIG, SIGKILL); }

std::string program_path(const std::string& name) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return (self.parent_path().parent_path() / name / name).string();
}

void prepare_process(char** argv) {
  run_without_address_randomisation(argv);
  std::signal(SIGPIPE, SIG_IGN);  // a child that died is found when its output ends
}

}  // namespace slotgraph::fuzz

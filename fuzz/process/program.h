// What every program of this room does around its own work.
#ifndef FUZZ_PROCESS_PROGRAM_H_
#define FUZZ_PROCESS_PROGRAM_H_

#include <string>

namespace slotgraph::fuzz {

// The first thing in main: starts the program again without address randomisation if that is on
// (one warning where it cannot be switched off), and lets no child that dies end it.
void prepare_process(char** argv);

// Plans and schedules lie beside the program, where Bazel puts them; `bazel run` starts it there
// already.
void enter_data_folder();

// Whether this process runs with it: the allocator's order of work then differs between runs.
bool address_randomisation();

// How people run another program of this room from where this one was: `bazel run //:NAME --`,
// or `./run.sh NAME` in a packed folder, whose run.sh says so.
std::string command_of(const std::string& name);

// A fresh folder, gone with its object.
class TemporaryFolder {
 public:
  TemporaryFolder();  // throws std::system_error
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// From now on SIGINT and SIGTERM ask for an end, which stop_requested() tells.
void stop_on_request();
bool stop_requested();

// The process ends when its parent does.
void die_with_parent();

// Another program of this room, `fuzz/NAME/NAME`, which the build puts beside this one.
std::string program_path(const std::string& name);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_PROCESS_PROGRAM_H_

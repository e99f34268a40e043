// A child process started by exec, with pipes to its standard input and from its standard output.
#ifndef FUZZ_PROCESS_PROCESS_H_
#define FUZZ_PROCESS_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace slotgraph::fuzz {

class Process {
 public:
  // Throws std::system_error if the program cannot be started. The child dies with this process.
  // Its standard error is this process's, or goes to a file, which is emptied first.
  explicit Process(const std::vector<std::string>& command, const std::string& error_file = "");
  ~Process();  // kills and reaps a child that still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int output() const { return output_; }  // descriptor to poll and read
  // Reads what is there, without waiting; false at the end of the output.
  bool read_lines(std::vector<std::string>& lines);
  // Returns false if the child no longer reads.
  bool write_line(const std::string& line);
  void close_input();
  void kill();
  // Waits for the end. Returns the exit code, or 128 + signal.
  int wait();

 private:
  pid_t child_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string rest_;
};

}  // namespace slotgraph::fuzz

#endif  // FUZZ_PROCESS_PROCESS_H_

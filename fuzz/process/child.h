// A child process that is given JSON lines and answers with JSON lines, and may die of what it is
// given.
#ifndef FUZZ_PROCESS_CHILD_H_
#define FUZZ_PROCESS_CHILD_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/process/process.h"

namespace slotgraph::fuzz {

// Started with the first request, and again after it has ended. One request at a time.
class Child {
 public:
  // Its standard error goes to the file; empty: it is this process's.
  Child(std::vector<std::string> command, std::string error_file)
      : command_(std::move(command)), error_file_(std::move(error_file)) {}

  void give(const nlohmann::json& request);
  bool idle() const { return !busy_; }
  int output() const { return process_->output(); }  // to poll while it is busy
  double seconds() const;                            // since the request
  void kill();
  // Ends its input and waits for its end. Its exit code; none if it was not running.
  std::optional<int> retire();

  struct Answer {
    nlohmann::json json;     // null: the process ended instead
    int code = 0;            // then: exit code, or 128 + signal
    std::string errors;      // then: what it wrote to its standard error since the request
    bool timed_out = false;  // then: it was killed for its silence
    std::vector<nlohmann::json> notes;  // lines before the answer: {"note": ..}
  };
  // The answer, once it is there.
  std::optional<Answer> answer();

 private:
  std::vector<std::string> command_;
  std::string error_file_;
  std::unique_ptr<Process> process_;
  bool busy_ = false;
  bool killed_ = false;
  std::uintmax_t errors_before_ = 0;  // bytes
  std::vector<nlohmann::json> notes_;
  std::chrono::steady_clock::time_point since_;
};

// Waits until one of the busy ones has something to say, or for half a second.
void wait_for_output(const std::vector<Child*>& children);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_PROCESS_CHILD_H_

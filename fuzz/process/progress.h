// The one line that shows how far long work has come, on standard error.
#ifndef FUZZ_PROCESS_PROGRESS_H_
#define FUZZ_PROCESS_PROGRESS_H_

#include <chrono>
#include <functional>
#include <string>

namespace slotgraph::fuzz {

class Progress {
 public:
  Progress();

  double seconds() const;  // since it was made; above 0
  // Shows the line, and asks for it, at most twice a second on a terminal, where it replaces the
  // one before, and every ten seconds elsewhere.
  void show(const std::function<std::string()>& line);
  // Before anything else is printed.
  void clear() const;

 private:
  std::chrono::steady_clock::time_point start_;
  double shown_ = 0;
  bool terminal_;
};

}  // namespace slotgraph::fuzz

#endif  // FUZZ_PROCESS_PROGRESS_H_

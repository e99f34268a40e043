#include "fuzz/process/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace slotgraph::fuzz {

Progress::Progress()
    : start_(std::chrono::steady_clock::now()), terminal_(::isatty(STDERR_FILENO) == 1) {}

double Progress::seconds() const {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start_;
  return std::max(since.count(), 1e-9);
}

void Progress::show(const std::function<std::string()>& line) {
  const double now = seconds();
  if (now - shown_ < (terminal_ ? 0.5 : 10)) return;
  shown_ = now;
  clear();
  fmt::print(stderr, "{}{}", line(), terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void Progress::clear() const {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

}  // namespace slotgraph::fuzz

#include "probes/conformance/driver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "core/exit_code.h"
#include "fuzz/process/child.h"
#include "fuzz/process/program.h"
#include "probes/conformance/worker.h"

namespace slotgraph::conformance {
namespace {

using Clock = std::chrono::steady_clock;

class Driver {
 public:
  Driver(const Options& options, std::size_t logs, const std::string& program, Results& results)
      : options_(options), results_(results) {
    for (int i = 0; i < options.jobs; ++i)
      workers_.push_back(
          {std::make_unique<fuzz::Child>(
               std::vector<std::string>{program, "--worker", "--seed", fmt::to_string(options.seed),
                                        "--operations", fmt::to_string(options.operations)},
               fmt::format("{}/{}", errors_.path(), i)),
           {}});
    for (const Policy policy : options.policies) {
      results_.programs[policy].resize(options.programs);
      for (std::size_t first = 0; first < options.programs; first += kInARow)
        waiting_.push_back({.policy = static_cast<int>(policy),
                            .first = first,
                            .count = std::min(kInARow, options.programs - first),
                            .logs = logs});
    }
    std::reverse(waiting_.begin(), waiting_.end());
  }

  int run() {
    fuzz::stop_on_request();
    ExitCode code = ask_for_device();
    bool busy = true;
    while (code == kHolds && busy) {
      busy = false;
      for (Worker& worker : workers_) {
        if (worker.child->idle()) give_next(worker);
        busy = busy || !worker.child->idle();
      }
      if (busy) fuzz::wait_for_output(children());
      for (Worker& worker : workers_) code = worse(code, collect(worker));
      show_progress();
      if (fuzz::stop_requested()) return worse(code, kStopped);
    }
    if (terminal_) fmt::print(stderr, "\r\033[K");
    return code;
  }

 private:
  static constexpr std::size_t kInARow = 5;

  struct Worker {
    std::unique_ptr<fuzz::Child> child;
    Request given;
  };

  std::vector<fuzz::Child*> children() const {
    std::vector<fuzz::Child*> all;
    for (const Worker& worker : workers_) all.push_back(worker.child.get());
    return all;
  }

  // Whether there is one, before anything else is started.
  ExitCode ask_for_device() {
    workers_[0].child->give(nlohmann::json(workers_[0].given));
    ExitCode code = kHolds;
    while (code == kHolds && !workers_[0].child->idle()) {
      fuzz::wait_for_output({workers_[0].child.get()});
      code = collect(workers_[0]);
    }
    return code;
  }

  void give_next(Worker& worker) {
    if (waiting_.empty()) return;
    worker.given = waiting_.back();
    waiting_.pop_back();
    worker.child->give(nlohmann::json(worker.given));
  }

  ExitCode collect(Worker& worker) {
    if (worker.child->idle()) return kHolds;
    auto answer = worker.child->answer();
    if (!answer) return kHolds;
    if (answer->json.is_null()) return explain(worker.given, *answer);
    const auto reply = answer->json.get<Reply>();
    results_.device = reply.device;
    results_.instruction_set = reply.instruction_set;
    for (std::size_t i = 0; i < reply.results.size(); ++i)
      results_.programs[kPolicies.at(worker.given.policy)][worker.given.first + i] =
          reply.results[i];
    for (const auto& [name, count] : reply.kinds) results_.kinds[name] += count;
    for (const auto& [name, count] : reply.situations) results_.situations[name] += count;
    done_ += reply.results.size();
    return kHolds;
  }

  // A worker that died says nothing about its programs.
  static ExitCode explain(const Request& given, const fuzz::Child::Answer& answer) {
    const std::string programs =
        given.count == 0
            ? "it started"
            : fmt::format("{} programs {} to {} ran", name_of(kPolicies.at(given.policy)),
                          given.first, given.first + given.count - 1);
    fmt::print(stderr, "{}a worker ended with code {} while {}\n", answer.errors, answer.code,
               programs);
    return answer.code == kViolated ? kViolated : kUnknown;
  }

  void show_progress() {
    const double now = std::chrono::duration<double>(Clock::now() - start_).count();
    if (now - shown_ < (terminal_ ? 0.5 : 10)) return;
    shown_ = now;
    const std::size_t all = options_.programs * options_.policies.size();
    fmt::print(stderr, "{}{} of {} programs, {:.0f} operations/s{}", terminal_ ? "\r\033[K" : "",
               done_, all, static_cast<double>(done_ * options_.operations) / now,
               terminal_ ? "" : "\n");
    std::fflush(stderr);
  }

  const Options& options_;
  Results& results_;
  fuzz::TemporaryFolder errors_;
  std::vector<Worker> workers_;
  std::vector<Request> waiting_;  // last one first
  std::size_t done_ = 0;          // programs
  Clock::time_point start_ = Clock::now();
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  double shown_ = 0;
};

}  // namespace

int drive(const Options& options, std::size_t logs, const std::string& program, Results& results) {
  return Driver(options, logs, program, results).run();
}

}  // namespace slotgraph::conformance

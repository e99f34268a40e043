#include "probes/conformance/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "core/exit_code.h"
#include "fuzz/process/pool.h"
#include "fuzz/process/program.h"
#include "fuzz/process/progress.h"
#include "probes/conformance/worker.h"

namespace slotgraph::conformance {
namespace {

class Driver {
 public:
  Driver(const Options& options, std::size_t logs, const std::string& program, Results& results)
      : options_(options),
        results_(results),
        pool_({program, "--worker", "--seed", fmt::to_string(options.seed), "--operations",
               fmt::to_string(options.operations)},
              options.jobs, errors_.path()) {
    for (const Policy policy : options.policies) {
      results_.programs[policy].resize(options.programs);
      for (std::size_t first = 0; first < options.programs; first += kInARow)
        waiting_.push_back({.policy = static_cast<int>(policy),
                            .first = first,
                            .count = std::min(kInARow, options.programs - first),
                            .logs = logs});
    }
  }

  ExitCode run() {
    fuzz::stop_on_request();
    // Whether there is a device, before anything else is started.
    std::deque<Request> none{Request()};
    answer(none);
    if (code_ == kHolds) answer(waiting_);
    progress_.clear();
    return fuzz::stop_requested() ? worse(code_, kStopped) : code_;
  }

 private:
  static constexpr std::size_t kInARow = 5;

  void answer(std::deque<Request>& requests) {
    pool_.run(
        [&](std::size_t) -> std::optional<Request> {
          if (requests.empty() || code_ != kHolds || fuzz::stop_requested()) return std::nullopt;
          const Request request = requests.front();
          requests.pop_front();
          return request;
        },
        [&](std::size_t, const Request& given, const fuzz::Outcome<Reply>& outcome) {
          if (outcome.reply) {
            take(given, *outcome.reply);
          } else {
            code_ = worse(code_, explain(given, outcome.answer));
          }
          return fuzz::After::kKeep;
        },
        [&] { show_progress(); });
  }

  void take(const Request& given, const Reply& reply) {
    results_.device = reply.device;
    results_.instruction_set = reply.instruction_set;
    for (std::size_t i = 0; i < reply.results.size(); ++i)
      results_.programs[kPolicies.at(given.policy)][given.first + i] = reply.results[i];
    for (const auto& [name, count] : reply.kinds) results_.kinds[name] += count;
    for (const auto& [name, count] : reply.situations) results_.situations[name] += count;
    done_ += reply.results.size();
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
    progress_.show([&] {
      return fmt::format("{} of {} programs, {:.0f} operations/s", done_,
                         options_.programs * options_.policies.size(),
                         static_cast<double>(done_ * options_.operations) / progress_.seconds());
    });
  }

  const Options& options_;
  Results& results_;
  fuzz::TemporaryFolder errors_;
  fuzz::Pool<Request, Reply> pool_;
  std::deque<Request> waiting_;
  std::size_t done_ = 0;  // programs
  ExitCode code_ = kHolds;
  fuzz::Progress progress_;
};

}  // namespace

int drive(const Options& options, std::size_t logs, const std::string& program, Results& results) {
  return Driver(options, logs, program, results).run();
}

}  // namespace slotgraph::conformance

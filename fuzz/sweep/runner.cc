#include "fuzz/sweep/runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/exit_code.h"
#include "core/files.h"
#include "core/json_reader.h"
#include "fuzz/process/child.h"
#include "fuzz/process/program.h"
#include "fuzz/repro/reproducer.h"
#include "fuzz/sweep/result.h"
#include "fuzz/sweep/sweep.h"
#include "fuzz/sweep/worker.h"

namespace slotgraph::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kPatience = 120;  // seconds for one trial
constexpr int kMostReported = 20;
constexpr std::uint64_t kDeepest = 48;  // fault points after the first of a pair

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Task {
  std::string mode;
  std::optional<Injection> injection;  // none: list the points
  enum class Next { kNone, kMore, kLast };
  // kMore: the same with the next number, until it no longer fires; kLast: the number is beyond the
  // last one, and nothing may fire.
  Next next = Next::kNone;
};

class Sweep {
 public:
  Sweep(const SweepOptions& options, const Case& value, const std::string& program)
      : options_(options),
        case_(value),
        wanted_(wanted(options.points)),
        table_(FatalTable::read("fuzz/sweep/fatal_points.csv")),
        trials_(options.out + "/trials.jsonl") {
    std::vector<std::string> command{program, "--worker"};
    if (!options.case_file.empty()) command.push_back(options.case_file);
    for (int i = 0; i < options.jobs; ++i) {
      workers_.push_back({Child(command, fmt::format("{}/worker-{}.stderr", options.out, i)), {}});
    }
    // One of an earlier sweep must not speak for this one.
    std::filesystem::remove(options.out + "/summary.json");
  }

  int run() {
    stop_on_request();
    if (options_.rules.empty()) {
      for (const std::string& mode : options_.modes)
        tasks_.push_back({mode, std::nullopt, Task::Next::kNone});
    } else {
      read_rules();
    }
    while (step()) show_progress();
    return finish();
  }

 private:
  static std::set<Point> wanted(const std::string& pattern) {
    const std::vector<Point> points = match_points(pattern);
    return {points.begin(), points.end()};
  }

  void read_rules() {
    const nlohmann::json json = read_json_file(options_.rules);
    const JsonReader reader(json, options_.rules);
    for (const JsonReader& rule : reader.elements()) {
      for (const std::string& mode : options_.modes) {
        tasks_.push_back({mode, injection_from_json(rule), Task::Next::kNone});
        ++summary_.fault_points;
      }
    }
  }

  // Gives work and takes one round of answers; false when all is done.
  bool step() {
    if (stop_requested()) tasks_.clear(), summary_.ended = false;
    std::vector<Child*> busy;
    for (Worker& worker : workers_) {
      if (worker.child.idle() && !tasks_.empty()) {
        worker.task = tasks_.front();
        tasks_.pop_front();
        nlohmann::json request{{"mode", worker.task.mode}, {"injection", nullptr}};
        if (worker.task.injection) request["injection"] = to_json(*worker.task.injection);
        worker.child.give(request);
      }
      if (!worker.child.idle()) busy.push_back(&worker.child);
    }
    if (busy.empty()) return false;
    wait_for_output(busy);
    for (Worker& worker : workers_) {
      if (worker.child.idle()) continue;
      const auto answer = worker.child.answer();
      if (answer) {
        // A worker that is lost, or in which something is wrong, would spoil what comes after.
        if (answer->json.is_object() && spoilt(worker.task, *answer)) worker.child.retire();
        take(worker.task, *answer);
      } else if (worker.child.seconds() > kPatience) {
        worker.child.kill();
      }
    }
    return true;
  }

  static bool spoilt(const Task& task, const Child::Answer& answer) {
    if (!task.injection) return false;
    const bool lost = task.injection->fault == Fault::kSticky && !answer.notes.empty();
    return lost || !answer.json["trial"]["findings"].empty();
  }

  void take(const Task& task, const Child::Answer& answer) {
    if (failed_) return;
    if (task.injection) {
      add(task, result_of(task, answer));
    } else if (answer.json.is_object() && answer.json["findings"].empty()) {
      plan(task.mode, answer.json["points"]);
    } else {
      give_up(task.mode, answer);
    }
  }

  // Without a run that holds nothing can be said of failures.
  void give_up(const std::string& mode, const Child::Answer& answer) {
    tasks_.clear();
    summary_.ended = false;
    failed_ = answer.timed_out        ? kUnknown
              : answer.json.is_null() ? static_cast<ExitCode>(answer.code)
                                      : kViolated;
    fmt::print(stderr, "sweep: the case does not run without failures in mode {}:\n{}\n", mode,
               answer.timed_out        ? "no answer"
               : answer.json.is_null() ? answer.errors
                                       : answer.json["findings"].dump(1));
  }

  Result result_of(const Task& task, const Child::Answer& answer) const {
    End end{answer.code, answer.errors, static_cast<int>(answer.notes.size()), {}};
    for (const nlohmann::json& note : answer.notes)
      if (note.is_array()) end.stack = note.get<std::vector<std::string>>();
    const Injection& injection = *task.injection;
    if (answer.json.is_null() && !answer.timed_out)
      return judge_end(task.mode, injection, end, table_);
    Result result;  // hung
    result.mode = task.mode;
    result.injection = injection;
    result.stack = end.stack;
    result.fired = end.fired;
    if (answer.timed_out) return result;
    const nlohmann::json& trial = answer.json["trial"];
    result.outcome = Outcome::kAbsorbed;
    result.verdict = Verdict::kHolds;
    result.error = trial["error"];
    result.findings = trial["findings"].get<std::vector<std::string>>();
    if (!result.error.empty()) result.outcome = Outcome::kRecovered;
    if (injection.fault == Fault::kSticky) result.outcome = Outcome::kSticky;
    if (result.fired == 0) result.outcome = Outcome::kNotReached;
    if (!result.findings.empty()) result.verdict = Verdict::kViolated;
    return result;
  }

  // The trials of one mode, from the points that a run without failure reached.
  void plan(const std::string& mode, const nlohmann::json& points) {
    if (fault() == Fault::kCapacity) {
      ++summary_.points;
      tasks_.push_back({mode, Injection{{"cudaMalloc", "*"}, 1, fault(), 0}, Task::Next::kMore});
      return;
    }
    std::vector<Injection> first;
    for (const nlohmann::json& json : points) {
      const Point point{json["point"], json["phase"]};
      if (!wanted_.contains(point)) continue;
      std::set<std::uint64_t> numbers;
      std::uint64_t calls = 0;
      for (const nlohmann::json& one : json["classes"]) {
        for (const std::uint64_t pick : one["picks"]) numbers.insert(pick);
        calls += one["count"].get<std::uint64_t>();
      }
      if (options_.every == "call")
        for (std::uint64_t i = 1; i <= calls; ++i) numbers.insert(i);
      summary_.rows[mode][point] = {json["classes"].size(), calls, 0, {}, 0};
      for (const std::uint64_t number : numbers) first.push_back({point, number, fault(), 0});
      if (!pairs()) {
        summary_.points += 1;
        tasks_.push_back({mode, Injection{point, calls + 1, fault(), 0}, Task::Next::kLast});
      }
    }
    if (pairs()) {
      // Spread evenly over all of them.
      const std::size_t most =
          options_.pairs == 0 ? first.size() : static_cast<std::size_t>(options_.pairs);
      const std::size_t count = std::min(most, first.size());
      for (std::size_t i = 0; i < count; ++i) {
        Injection injection = first[i * first.size() / count];
        injection.second = 1;
        tasks_.push_back({mode, injection, Task::Next::kMore});
        ++summary_.points;
      }
      return;
    }
    summary_.fault_points += first.size();
    for (const Injection& injection : first) tasks_.push_back({mode, injection, Task::Next::kNone});
  }

  bool pairs() const { return options_.fault == "pair"; }
  Fault fault() const {
    return options_.fault == "persistent" ? Fault::kPersistent
           : options_.fault == "sticky"   ? Fault::kSticky
           : options_.fault == "capacity" ? Fault::kCapacity
                                          : Fault::kOnce;
  }

  void add(const Task& task, Result result) {
    if (result.verdict == Verdict::kViolated) confirm_failure(result);
    ++summary_.runs;
    ++summary_.outcomes[to_string(result.outcome)];
    ++summary_.verdicts[to_string(result.verdict)];
    auto& row = summary_.rows[task.mode][task.injection->point];
    ++row.runs;
    ++row.outcomes[result.outcome];
    row.violated += result.verdict == Verdict::kViolated;
    count(task, result);
    trials_.append(to_json(result).dump());
    if (result.verdict != Verdict::kHolds) print_failure(result);
  }

  void count(const Task& task, const Result& result) {
    const bool ended = result.outcome != Outcome::kHung;
    if (task.next == Task::Next::kLast) {
      summary_.exhausted += ended && result.fired == 0;
      return;
    }
    if (task.next == Task::Next::kNone) {
      summary_.points_reached += result.fired > 0;
      return;
    }
    // The second failure of a pair moves on until it no longer happens; the device grows until it
    // is large enough.
    Injection next = result.injection;
    const bool pair = next.second > 0;
    const bool again = result.fired > (pair ? 1 : 0);
    summary_.fault_points += again;
    summary_.points_reached += again;
    if (!again) {
      summary_.exhausted += ended;
    } else if (pair && next.second == kDeepest) {
      ++summary_.cut;
    } else if (!stop_requested()) {
      ++(pair ? next.second : next.nth);
      tasks_.push_front({task.mode, next, task.next});
    }
  }

  // A failure is run again, in a process of its own, before it is reported.
  void confirm_failure(Result& result) {
    if (++failures_ > kMostReported) return;
    result.folder = fmt::format("{}/repro/{}", options_.out, failures_);
    Observation seen = observation_of(result.mode, result.injection, result.findings);
    const Observation again = confirm(program_path("repro"), result.folder,
                                      {{case_, result.mode, result.injection}, seen});
    if (again.signature == seen.signature) return;
    result.verdict = Verdict::kFlaky;
    result.findings.push_back("again in a fresh process: " +
                              (again.signature.empty() ? "it held" : again.signature));
  }

  void print_failure(const Result& result) const {
    if (failures_ > kMostReported) return;
    if (terminal_) fmt::print(stderr, "\r\033[K");
    fmt::print("\n{}: {}, mode {}: {}\n", to_string(result.verdict), to_string(result.injection),
               result.mode, to_string(result.outcome));
    if (!result.error.empty()) fmt::print("  thrown: {}\n", first_line(result.error));
    for (const std::string& finding : result.findings) fmt::print("  {:.300}\n", finding);
    for (std::size_t i = 0; i < std::min<std::size_t>(result.stack.size(), 12); ++i)
      fmt::print("    {}\n", result.stack[i]);
    if (!result.folder.empty())
      fmt::print("  again:   {1} {0}\n  smaller: {2} {0}\n", result.folder, command_of("repro"),
                 command_of("shrink"));
    std::fflush(stdout);
  }

  void show_progress() {
    const double now = seconds_since(start_);
    if (now - shown_ < (terminal_ ? 0.5 : 20)) return;
    shown_ = now;
    const double rate = static_cast<double>(summary_.runs) / now;
    if (terminal_) fmt::print(stderr, "\r\033[K");
    fmt::print(stderr, "{} runs, {:.1f}/s, {} violated, {} unknown, {} to go{}", summary_.runs,
               rate, summary_.verdicts["violated"], summary_.verdicts["unknown"], tasks_.size(),
               terminal_ ? "" : "\n");
    std::fflush(stderr);
  }

  int finish() {
    if (terminal_) fmt::print(stderr, "\r\033[K");
    nlohmann::json json = to_json(summary_);
    json["fault"] = options_.fault;
    json["every"] = options_.every;
    json["seconds"] = seconds_since(start_);
    write_file(options_.out + "/summary.json", json.dump(1) + "\n");
    fmt::print("\n{}\n", table_of(summary_));
    fmt::print("fault points {}, reached {}, runs {}, complete {}, seconds {:.0f}\n",
               summary_.fault_points, summary_.points_reached, summary_.runs, summary_.complete(),
               seconds_since(start_));
    for (const auto& [name, count] : summary_.outcomes) fmt::print("  {:<16}{:>8}\n", name, count);
    for (const auto& [name, count] : summary_.verdicts) fmt::print("{:<18}{:>8}\n", name, count);
    if (summary_.cut > 0)
      fmt::print("{} pairs were followed to point {} after the first failure only\n", summary_.cut,
                 kDeepest);
    if (failures_ > kMostReported)
      fmt::print("{} further failures are in trials.jsonl only\n", failures_ - kMostReported);
    fmt::print("every trial: {0}/trials.jsonl, totals: {0}/summary.json\n", options_.out);
    if (failed_) return *failed_;
    if (summary_.verdicts["violated"] + summary_.verdicts["flaky"] > 0) return kViolated;
    if (summary_.verdicts["unknown"] > 0) return kUnknown;
    if (stop_requested()) return kStopped;
    SweepSummary followed = summary_;
    // How far a pair is followed is no open question.
    followed.exhausted += std::exchange(followed.cut, 0);
    return summary_.runs == 0 || !followed.complete() ? kUnknown : kHolds;
  }

  const SweepOptions& options_;
  const Case& case_;
  std::set<Point> wanted_;
  FatalTable table_;
  LineFile trials_;
  struct Worker {
    Child child;
    Task task;
  };
  std::deque<Worker> workers_;
  std::deque<Task> tasks_;
  SweepSummary summary_;
  std::optional<ExitCode> failed_;  // the case does not run without failures
  int failures_ = 0;
  Clock::time_point start_ = Clock::now();
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  double shown_ = 0;
};

}  // namespace

int run_sweep(const SweepOptions& options, const Case& value, const std::string& program) {
  return Sweep(options, value, program).run();
}

}  // namespace slotgraph::fuzz

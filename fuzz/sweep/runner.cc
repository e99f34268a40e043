#include "fuzz/sweep/runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/exit_code.h"
#include "core/files.h"
#include "core/json_reader.h"
#include "fuzz/fault/ends.h"
#include "fuzz/fault/sweep.h"
#include "fuzz/process/pool.h"
#include "fuzz/process/program.h"
#include "fuzz/process/progress.h"
#include "fuzz/repro/reproducer.h"
#include "fuzz/sweep/result.h"
#include "fuzz/sweep/worker.h"

namespace slotgraph::fuzz {
namespace {

constexpr double kPatience = 120;       // seconds for one trial
constexpr std::uint64_t kDeepest = 48;  // fault points after the first of a pair

std::vector<std::string> worker_command(const SweepOptions& options, const std::string& program) {
  std::vector<std::string> command{program, "--worker"};
  if (!options.case_file.empty()) command.push_back(options.case_file);
  return command;
}

class Runner {
 public:
  Runner(const SweepOptions& options, const Case& value, const std::string& program)
      : options_(options),
        case_(value),
        wanted_(wanted(options.points)),
        table_(FatalTable::read("fuzz/fault/fatal_points.json")),
        trials_(options.out + "/trials.jsonl"),
        pool_(worker_command(options, program), options.jobs, options.out, kPatience),
        given_(static_cast<std::size_t>(options.jobs)) {
    // One of an earlier sweep must not speak for this one.
    std::filesystem::remove(options.out + "/summary.json");
    for (const Mode mode : options.modes) sweeps_.emplace(mode, Sweep(kDeepest));
    for (const std::string& warning : table_.warnings())
      fmt::print(stderr, "warning: {}\n", warning);
  }

  int run() {
    stop_on_request();
    if (options_.rules.empty()) {
      to_list_ = options_.modes;
    } else {
      read_rules();
    }
    pool_.run([&](std::size_t worker) { return next(worker); },
              [&](std::size_t worker, const TrialRequest& given,
                  const Outcome<TrialReply>& outcome) { return take(worker, given, outcome); },
              [&] { show_progress(); });
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
      for (auto& [mode, sweep] : sweeps_) sweep.add(injection_from_json(rule), Step::Next::kNone);
    }
  }

  void stop() {
    to_list_.clear();
    for (auto& [mode, sweep] : sweeps_) sweep.stop();
  }

  std::optional<TrialRequest> next(std::size_t worker) {
    if (stop_requested()) stop();
    if (!to_list_.empty()) {
      const Mode mode = to_list_.front();
      to_list_.erase(to_list_.begin());
      return TrialRequest{mode, std::nullopt};
    }
    for (auto& [mode, sweep] : sweeps_) {
      if (sweep.empty()) continue;
      given_[worker] = sweep.take();
      return TrialRequest{mode, given_[worker].injection};
    }
    return std::nullopt;
  }

  // A worker that is lost, or in which something is wrong, would spoil what comes after.
  After take(std::size_t worker, const TrialRequest& given, const Outcome<TrialReply>& outcome) {
    if (failed_) return After::kKeep;
    if (!given.injection) {
      list(given.mode, outcome);
      return After::kKeep;
    }
    const Result result = result_of(given, outcome);
    add(given_[worker], result);
    if (!outcome.reply) return After::kKeep;
    const bool lost = traits(given.injection->fault).loses_device && result.fired > 0;
    return lost || !outcome.reply->findings.empty() ? After::kRetire : After::kKeep;
  }

  void list(Mode mode, const Outcome<TrialReply>& outcome) {
    if (outcome.reply && outcome.reply->findings.empty()) {
      plan(mode, outcome.reply->points);
      return;
    }
    // Without a run that holds nothing can be said of failures.
    stop();
    const Child::Answer& answer = outcome.answer;
    failed_ = answer.timed_out ? kUnknown
              : !outcome.reply ? static_cast<ExitCode>(answer.code)
                               : kViolated;
    fmt::print(stderr, "sweep: the case does not run without failures in mode {}:\n{}\n",
               to_string(mode),
               answer.timed_out ? "no answer"
               : !outcome.reply ? answer.errors
                                : fmt::format("{}", fmt::join(outcome.reply->findings, "\n")));
  }

  Result result_of(const TrialRequest& given, const Outcome<TrialReply>& outcome) const {
    const Child::Answer& answer = outcome.answer;
    End end{answer.code, answer.errors, static_cast<int>(answer.notes.size()), {}};
    for (const nlohmann::json& note : answer.notes)
      if (note.is_array()) end.stack = note.get<std::vector<std::string>>();
    const Injection& injection = *given.injection;
    if (!outcome.reply && !answer.timed_out) return judge_end(given.mode, injection, end, table_);
    Result result;  // hung
    result.mode = given.mode;
    result.injection = injection;
    result.stack = end.stack;
    result.fired = end.fired;
    if (answer.timed_out) return result;
    result.outcome = TrialOutcome::kAbsorbed;
    result.verdict = Verdict::kHolds;
    result.error = outcome.reply->error;
    result.findings = outcome.reply->findings;
    if (!result.error.empty()) result.outcome = TrialOutcome::kRecovered;
    if (traits(injection.fault).loses_device) result.outcome = TrialOutcome::kSticky;
    if (result.fired == 0) result.outcome = TrialOutcome::kNotReached;
    if (!result.findings.empty()) result.verdict = Verdict::kViolated;
    return result;
  }

  // The trials of one mode, from the points that a run without failure reached.
  void plan(Mode mode, const std::vector<ReachedPoint>& points) {
    Sweep& sweep = sweeps_.at(mode);
    if (options_.fault == Fault::kCapacity) {
      sweep.add({{"cudaMalloc", "*"}, 1, options_.fault, 0}, Step::Next::kMore);
      return;
    }
    std::vector<Injection> all;
    for (const ReachedPoint& reached : points) {
      const Point point{reached.point, reached.phase};
      if (!wanted_.contains(point)) continue;
      std::set<std::uint64_t> numbers;
      std::uint64_t calls = 0;
      for (const PointClass& each : reached.classes) {
        numbers.insert(each.picks.begin(), each.picks.end());
        calls += each.count;
      }
      if (options_.every == "call")
        for (std::uint64_t i = 1; i <= calls; ++i) numbers.insert(i);
      summary_.rows[to_string(mode)][point] = {reached.classes.size(), calls, 0, {}, 0};
      for (const std::uint64_t number : numbers) all.push_back({point, number, options_.fault, 0});
      if (!options_.pair) sweep.add({point, calls + 1, options_.fault, 0}, Step::Next::kBeyond);
    }
    const std::size_t most =
        options_.sample == 0 ? all.size() : static_cast<std::size_t>(options_.sample);
    const std::size_t count = std::min(most, all.size());
    for (std::size_t i = 0; i < count; ++i) {
      Injection injection = all[i * all.size() / count];
      if (options_.pair) injection.second = 1;
      sweep.add(injection, options_.pair ? Step::Next::kMore : Step::Next::kNone);
    }
  }

  void add(const Step& step, Result result) {
    if (result.verdict == Verdict::kViolated) confirm_failure(result);
    ++summary_.runs;
    ++summary_.outcomes[result.outcome];
    summary_.verdicts.add(result.verdict);
    auto& row = summary_.rows[to_string(result.mode)][result.injection.point];
    ++row.runs;
    ++row.outcomes[result.outcome];
    row.violated += result.verdict == Verdict::kViolated;
    sweeps_.at(result.mode).took(step, result.fired, result.outcome != TrialOutcome::kHung);
    trials_.append(to_json(result).dump());
    if (result.verdict != Verdict::kHolds) print_failure(result);
  }

  // A failure is run again, in a process of its own, before it is reported.
  void confirm_failure(Result& result) {
    if (++failures_ > kMostReported) return;
    result.folder = fmt::format("{}/repro/{}", options_.out, failures_);
    Observation seen = observation_of(result.mode, result.injection, result.findings);
    const Observation again = confirm(program_path("repro"), result.folder,
                                      {{case_, result.injection, result.mode}, seen});
    if (again.signature == seen.signature) return;
    result.verdict = Verdict::kFlaky;
    result.findings.push_back("again in a fresh process: " +
                              (again.signature.empty() ? "it held" : again.signature));
  }

  void print_failure(const Result& result) const {
    if (failures_ > kMostReported) return;
    progress_.clear();
    fmt::print("\n{}: {}, mode {}: {}\n", to_string(result.verdict), to_string(result.injection),
               to_string(result.mode), to_string(result.outcome));
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
    progress_.show([&] {
      const auto runs = static_cast<double>(summary_.runs);
      return fmt::format("{} of {} runs, {:.1f}/s: {}", summary_.runs, planned(),
                         runs / progress_.seconds(), to_string(summary_.verdicts));
    });
  }

  // Runs that are known by now: those that follow from others are not.
  std::uint64_t planned() const {
    std::uint64_t count = summary_.runs;
    for (const auto& [mode, sweep] : sweeps_) count += sweep.waiting();
    return count;
  }

  int finish() {
    progress_.clear();
    const double seconds = progress_.seconds();
    for (const auto& [mode, sweep] : sweeps_) summary_.totals += sweep.totals();
    const Sweep::Totals& totals = summary_.totals;
    nlohmann::json json = to_json(summary_);
    json["fault"] = options_.pair ? "pair" : to_string(options_.fault);
    json["every"] = options_.every;
    json["sample"] = options_.sample;
    json["seconds"] = seconds;
    write_file(options_.out + "/summary.json", json.dump(1) + "\n");
    fmt::print("\n{}\n", table_of(summary_));
    fmt::print("fault points {}, reached {}, runs {}, complete {}, seconds {:.0f}\n",
               totals.fault_points, totals.points_reached, summary_.runs, totals.complete(),
               seconds);
    for (const auto& [outcome, count] : summary_.outcomes)
      fmt::print("  {:<16}{:>8}\n", to_string(outcome), count);
    for (const Verdict verdict : kVerdicts)
      fmt::print("{:<18}{:>8}\n", to_string(verdict), summary_.verdicts[verdict]);
    if (totals.cut > 0)
      fmt::print("{} pairs were followed to point {} after the first failure only\n", totals.cut,
                 kDeepest);
    if (failures_ > kMostReported)
      fmt::print("{} further failures are in trials.jsonl only\n", failures_ - kMostReported);
    fmt::print("every trial: {0}/trials.jsonl, totals: {0}/summary.json\n", options_.out);
    ExitCode code = exit_code_of(summary_.verdicts);
    // How far a pair is followed is no open question.
    Sweep::Totals followed = totals;
    followed.exhausted += std::exchange(followed.cut, 0);
    if (stop_requested()) {
      code = worse(summary_.runs == 0 ? kHolds : code, kStopped);
    } else if (!followed.complete()) {
      code = worse(code, kUnknown);
    }
    return failed_.value_or(code);
  }

  const SweepOptions& options_;
  const Case& case_;
  std::set<Point> wanted_;
  FatalTable table_;
  LineFile trials_;
  Pool<TrialRequest, TrialReply> pool_;
  std::vector<Step> given_;  // to each worker
  std::vector<Mode> to_list_;
  std::map<Mode, Sweep> sweeps_;
  SweepSummary summary_;
  std::optional<ExitCode> failed_;
  int failures_ = 0;
  Progress progress_;
};

}  // namespace

int run_sweep(const SweepOptions& options, const Case& value, const std::string& program) {
  return Runner(options, value, program).run();
}

}  // namespace slotgraph::fuzz

#include "fuzz/campaign/campaign.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "core/device/device.h"
#include "core/error.h"
#include "core/files.h"
#include "fuzz/campaign/worker.h"
#include "fuzz/execute/execute.h"
#include "fuzz/process/process.h"
#include "fuzz/process/program.h"
#include "fuzz/repro/reproducer.h"

namespace slotgraph::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Campaign {
 public:
  Campaign(const Options& options, const Sources& sources, std::string program)
      : options_(options), sources_(sources), program_(std::move(program)) {}

  int run() {
    stop_on_request();
    for (int i = 0; i < options_.jobs; ++i) {
      workers_.push_back(
          std::make_unique<Worker>(fmt::format("{}/records-{}.jsonl", options_.out, i)));
      start(*workers_.back());
    }
    while (std::any_of(workers_.begin(), workers_.end(),
                       [](const auto& worker) { return worker->process != nullptr; })) {
      wait_for_output();
      for (const auto& worker : workers_) {
        if (worker->process) collect(*worker);
      }
      show_progress();
    }
    run_again();
    return finish();
  }

 private:
  struct Worker {
    explicit Worker(const std::string& path) : records(path) {}
    LineFile records;
    std::unique_ptr<Process> process;
    std::optional<std::uint64_t> running;  // index of the case that it was given
    std::uint64_t next = 0;                // index of the case that it gets next,
    std::uint64_t left = 0;                // of this many
  };

  void start(Worker& worker) {
    worker.process = worker_process();
    give_next(worker);
  }

  std::unique_ptr<Process> worker_process() const {
    return std::make_unique<Process>(std::vector<std::string>{
        program_, "--worker", "--seed", fmt::to_string(options_.seed), "--filter", options_.filter,
        "--scale", options_.large ? "large" : "small"});
  }

  // A sample of the cases, each in a fresh process: the same bits must come again.
  void run_again() {
    std::vector<std::pair<std::uint64_t, std::string>> all(value_digests_.begin(),
                                                           value_digests_.end());
    const std::size_t sample = std::min(static_cast<std::size_t>(options_.again), all.size());
    const auto batch = static_cast<std::size_t>(options_.jobs);
    for (std::size_t begin = 0; begin < sample && !stop_requested(); begin += batch) {
      std::vector<std::pair<std::size_t, std::unique_ptr<Process>>> processes;
      for (std::size_t i = begin; i < std::min(begin + batch, sample); ++i) {
        processes.emplace_back(i * all.size() / sample, worker_process());
        processes.back().second->write_line(fmt::to_string(all[processes.back().first].first));
        processes.back().second->close_input();
      }
      for (const auto& [place, process] : processes)
        compare_again(all[place].first, all[place].second, *process);
    }
  }

  void compare_again(std::uint64_t index, const std::string& expected, Process& process) {
    std::vector<std::string> lines;
    pollfd output{process.output(), POLLIN, 0};
    while (process.read_lines(lines)) ::poll(&output, 1, 1000);
    const int code = process.wait();
    const std::string found =
        lines.empty() ? fmt::format("code {} and no record", code)
                      : record_from_json(nlohmann::json::parse(lines[0]), "worker").value_digest;
    ++again_;
    if (found == expected) return;
    ++again_differ_;
    clear_progress();
    fmt::print("case {} in a fresh process: values {}, expected {}\n", index, found, expected);
  }

  // The next case, or the end of the input if there is none.
  void give_next(Worker& worker) {
    const bool time_over = options_.seconds > 0 && seconds_since(start_) > options_.seconds;
    if (!stop_requested() && !time_over) worker.running = next_case(worker);
    if (worker.running && options_.cases > 0 && *worker.running >= options_.cases)
      worker.running.reset();
    if (worker.running) {
      worker.process->write_line(fmt::to_string(*worker.running));
    } else {
      worker.process->close_input();
    }
  }

  // Cases that can share a capture go to one worker.
  std::uint64_t next_case(Worker& worker) {
    const std::uint64_t block = options_.large ? kLargeBlock : 1;
    if (worker.left == 0) {
      worker.next = next_block_++ * block;
      worker.left = block;
    }
    --worker.left;
    return worker.next++;
  }

  void wait_for_output() {
    std::vector<pollfd> outputs;
    for (const auto& worker : workers_) {
      if (worker->process) outputs.push_back({worker->process->output(), POLLIN, 0});
    }
    ::poll(outputs.data(), outputs.size(), 200);
  }

  void collect(Worker& worker) {
    std::vector<std::string> lines;
    const bool open = worker.process->read_lines(lines);
    for (const std::string& line : lines) {
      worker.running.reset();
      add(worker, record_from_json(nlohmann::json::parse(line), "worker"));
      give_next(worker);
    }
    if (open) return;
    const int code = worker.process->wait();
    worker.process.reset();
    if (worker.running) {
      const std::uint64_t lost = *worker.running;
      worker.running.reset();
      add(worker, lost_record(lost, code));
      start(worker);
    } else if (code != 0) {
      internal_error_ = true;
      fmt::print(stderr, "a worker ended with code {} after its last case\n", code);
    }
  }

  // A worker that dies says nothing about its case.
  Record lost_record(std::uint64_t index, int code) const {
    const Generated generated = draw_case(options_, sources_, index);
    Record record;
    record.index = index;
    record.case_seed = generated.value.seed;
    record.case_digest = digest(generated.value);
    record.plan = generated.plan;
    record.schedule = generated.schedule;
    record.wrapped = generated.value.wraps();
    record.mixed = generated.value.mixes();
    record.equal_tokens = generated.value.equal_tokens();
    record.verdict = Verdict::kUnknown;
    record.findings.push_back({"worker", "all", "process",
                               fmt::format("ended with code {} while it ran the case", code)});
    return record;
  }

  void add(Worker& worker, Record record) {
    if (!record.skipped && record.verdict != Verdict::kHolds) {
      const Generated generated = draw_case(options_, sources_, record.index);
      record.case_file =
          fmt::format("{}/cases/{}-{}.json", options_.out, options_.seed, record.index);
      write_file(record.case_file, to_json(generated.value).dump(1) + "\n");
      clear_progress();
      confirm_failure(record, generated.value);
      print_failure(record);
    }
    worker.records.append(to_json(record).dump());
    if (options_.again > 0 && !record.value_digest.empty())
      value_digests_[record.index] = record.value_digest;
    summary_.add(std::move(record));
  }

  // A failure is run again, in a process of its own, before it is reported.
  void confirm_failure(Record& record, const Case& value) {
    constexpr int most = 20;
    if (++failures_ > most) return;
    const std::string folder =
        fmt::format("{}/repro/{}-{}", options_.out, options_.seed, record.index);
    const Observation seen = observation_of(record);
    const Observation again = confirm(program_path("repro"), folder, {{value, "", {}}, seen});
    record.repro_folder = folder;
    // Of a worker that died it is known only that it did.
    const bool same = record.verdict == Verdict::kUnknown ? again.signature.starts_with("process: ")
                                                          : again.signature == seen.signature;
    if (same) return;
    if (record.verdict == Verdict::kViolated) record.verdict = Verdict::kFlaky;
    record.findings.push_back({"again", "all", "a second run in a fresh process",
                               again.signature.empty() ? "held" : again.signature});
  }

  void clear_progress() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

  void show_progress() {
    const double now = seconds_since(start_);
    if (now - shown_ < (terminal_ ? 0.5 : 10)) return;
    shown_ = now;
    double left = options_.seconds > 0 ? options_.seconds - now : 1e9;
    const std::uint64_t done = summary_.cases + summary_.skipped;
    if (options_.cases > 0 && done > 0)
      left = std::min(left,
                      now * (static_cast<double>(options_.cases) / static_cast<double>(done) - 1));
    clear_progress();
    fmt::print(stderr,
               "{} cases, {:.1f}/s, {} hold, {} violated or flaky, {} unknown, {:.0f} s left{}",
               summary_.cases, static_cast<double>(summary_.cases) / std::max(now, 1e-9),
               summary_.holds, summary_.violated + summary_.flaky, summary_.unknown,
               std::max(left, 0.0), terminal_ ? "" : "\n");
    std::fflush(stderr);
  }

  int finish() {
    clear_progress();
    const double seconds = seconds_since(start_);
    nlohmann::json json = to_json(summary_);
    json["seconds"] = seconds;
    json["seed"] = options_.seed;
    json["jobs"] = options_.jobs;
    json["again"] = {{"cases", again_}, {"differ", again_differ_}};
    const device::Capabilities device = device::capabilities();
    json["device"] = {{"name", device.name}, {"instruction_set", device.instruction_set}};
    write_file(options_.out + "/summary.json", json.dump(1) + "\n");
    print_summary(seconds);
    if (internal_error_) return kInternal;
    if (summary_.violated + summary_.flaky + again_differ_ > 0) return kViolated;
    if (summary_.unknown > 0 || summary_.cases == 0) return kUnknown;
    return stop_requested() ? kStopped : kHolds;
  }

  void print_summary(double seconds) {
    const auto row = [](const char* name, auto value) {
      fmt::print("{:<22}{:>16}\n", name, value);
    };
    fmt::print("\n");
    row("cases", summary_.cases);
    row("  wrap the ring", summary_.wrapped);
    row("  mix variants", summary_.mixed);
    row("  both", summary_.mixed_and_wrapped);
    row("  equal tokens", summary_.equal_tokens);
    row("skipped", summary_.skipped);
    Counters counters = summary_.counters;
    for (std::size_t i = 0; i < Counters::kNames.size(); ++i)
      row(Counters::kNames[i], *counters.fields()[i]);
    if (options_.again > 0) {
      row("run again", again_);
      row("  other values", again_differ_);
    }
    row("seconds", fmt::format("{:.1f}", seconds));
    row("holds", summary_.holds);
    row("violated", summary_.violated);
    row("flaky", summary_.flaky);
    row("unknown", summary_.unknown);
    fmt::print(
        "\nrecords and summary.json: {}\nreport: bazel run //reports -- {}/records-*.jsonl --out "
        "{}/report\n",
        options_.out, options_.out, options_.out);
  }

  const Options& options_;
  const Sources& sources_;
  std::string program_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::uint64_t next_block_ = 0;
  Summary summary_;
  Clock::time_point start_ = Clock::now();
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  double shown_ = 0;
  bool internal_error_ = false;
  std::map<std::uint64_t, std::string> value_digests_;  // of cases that may run again
  std::uint64_t again_ = 0;
  std::uint64_t again_differ_ = 0;
  int failures_ = 0;
};

}  // namespace

int run_campaign(const Options& options, const Sources& sources, const std::string& program) {
  return Campaign(options, sources, program).run();
}

int run_case(const Options& options) {
  const Case value = read_case(options.case_file);
  device::initialise();
  Record record = execute(value);
  record.case_file = options.case_file;
  fmt::print("case {}\nplan {}, schedule {}, {} microbatches\n{} tensors, {} bytes compared: {}\n",
             record.case_digest, record.plan, record.schedule, record.counters.microbatches,
             record.counters.tensors_compared, record.counters.bytes_compared,
             to_string(record.verdict));
  if (record.verdict == Verdict::kHolds) return kHolds;
  print_failure(record);
  return record.verdict == Verdict::kViolated ? kViolated : kUnknown;
}

void print_failure(const Record& record) {
  fmt::print("\ncase {} {}: plan {}, schedule {}\n", record.index, to_string(record.verdict),
             record.plan, record.schedule);
  for (const Finding& finding : record.findings) {
    fmt::print("  {}, {}: {}: {}\n", finding.property, finding.execution, finding.where,
               finding.what);
  }
  fmt::print("  case file: {}\n  reproduce: {} --case {}\n", record.case_file,
             command_of("campaign"), record.case_file);
  if (!record.repro_folder.empty())
    fmt::print("  smaller:   {} {}\n", command_of("shrink"), record.repro_folder);
  std::fflush(stdout);
}

}  // namespace slotgraph::fuzz

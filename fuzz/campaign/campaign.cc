#include "fuzz/campaign/campaign.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/device/device.h"
#include "core/error.h"
#include "core/files.h"
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
    return finish();
  }

 private:
  struct Worker {
    explicit Worker(const std::string& path) : records(path) {}
    LineFile records;
    std::unique_ptr<Process> process;
    std::optional<std::uint64_t> running;  // index of the case that it was given
  };

  void start(Worker& worker) {
    worker.process = std::make_unique<Process>(
        std::vector<std::string>{program_, "--worker", "--seed", fmt::to_string(options_.seed),
                                 "--filter", options_.filter});
    give_next(worker);
  }

  // The next case, or the end of the input if there is none.
  void give_next(Worker& worker) {
    const bool time_over = options_.seconds > 0 && seconds_since(start_) > options_.seconds;
    const bool all_given = options_.cases > 0 && next_ >= options_.cases;
    if (stop_requested() || time_over || all_given) {
      worker.process->close_input();
      return;
    }
    worker.running = next_++;
    worker.process->write_line(fmt::to_string(*worker.running));
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
    const Generated generated = generate(sources_, case_seed(options_.seed, index));
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
      const Generated generated = generate(sources_, case_seed(options_.seed, record.index));
      record.case_file =
          fmt::format("{}/cases/{}-{}.json", options_.out, options_.seed, record.index);
      write_file(record.case_file, to_json(generated.value).dump(1) + "\n");
      clear_progress();
      confirm_failure(record, generated.value);
      print_failure(record);
    }
    worker.records.append(to_json(record).dump());
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
    fmt::print(stderr, "{} cases, {:.1f}/s, {} hold, {} violated, {} unknown, {:.0f} s left{}",
               summary_.cases, static_cast<double>(summary_.cases) / std::max(now, 1e-9),
               summary_.holds, summary_.violated, summary_.unknown, std::max(left, 0.0),
               terminal_ ? "" : "\n");
    std::fflush(stderr);
  }

  int finish() {
    clear_progress();
    const double seconds = seconds_since(start_);
    nlohmann::json json = to_json(summary_);
    json["seconds"] = seconds;
    json["seed"] = options_.seed;
    json["jobs"] = options_.jobs;
    const device::Capabilities device = device::capabilities();
    json["device"] = {{"name", device.name}, {"instruction_set", device.instruction_set}};
    write_file(options_.out + "/summary.json", json.dump(1) + "\n");
    print_summary(seconds);
    if (internal_error_) return kInternal;
    if (summary_.violated > 0) return kViolated;
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
    row("seconds", fmt::format("{:.1f}", seconds));
    row("holds", summary_.holds);
    row("violated", summary_.violated);
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
  std::uint64_t next_ = 0;  // index of the next case
  Summary summary_;
  Clock::time_point start_ = Clock::now();
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  double shown_ = 0;
  bool internal_error_ = false;
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
  fmt::print("  case file: {}\n  reproduce: bazel run //fuzz:campaign -- --case {}\n",
             record.case_file, record.case_file);
  if (!record.repro_folder.empty())
    fmt::print("  smaller:   bazel run //fuzz:shrink -- {}\n", record.repro_folder);
  std::fflush(stdout);
}

}  // namespace slotgraph::fuzz

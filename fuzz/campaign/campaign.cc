#include "fuzz/campaign/campaign.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/device/device.h"
#include "core/error.h"
#include "core/record/files.h"
#include "fuzz/campaign/process.h"
#include "fuzz/execute/execute.h"

namespace slotgraph::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t stop_signal = 0;

void request_stop(int) { stop_signal = 1; }

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Campaign {
 public:
  Campaign(const Options& options, const Sources& sources, std::string program)
      : options_(options), sources_(sources), program_(std::move(program)) {}

  int run() {
    std::signal(SIGINT, request_stop);
    std::signal(SIGTERM, request_stop);
    for (int i = 0; i < options_.jobs; ++i) {
      shards_.push_back(
          std::make_unique<Shard>(fmt::format("{}/records-{}.jsonl", options_.out, i)));
      start(i, 0);
    }
    while (std::any_of(shards_.begin(), shards_.end(),
                       [](const auto& shard) { return shard->process != nullptr; })) {
      wait_for_output();
      for (int i = 0; i < options_.jobs; ++i) {
        if (shards_[i]->process) collect(i);
      }
      show_progress();
      if (stop_signal || (options_.seconds > 0 && seconds_since(start_) > options_.seconds)) stop();
    }
    return finish();
  }

 private:
  struct Shard {
    explicit Shard(const std::string& path) : records(path) {}
    LineFile records;
    std::unique_ptr<Process> process;
    std::optional<std::uint64_t> running;  // index of the case that has begun
  };

  void start(int shard, std::uint64_t first) {
    shards_[shard]->process = std::make_unique<Process>(std::vector<std::string>{
        program_, "--worker", fmt::to_string(shard), "--jobs", fmt::to_string(options_.jobs),
        "--seed", fmt::to_string(options_.seed), "--cases", fmt::to_string(options_.cases),
        "--first", fmt::to_string(first), "--filter", options_.filter});
    if (stopping_) shards_[shard]->process->close_input();
  }

  void stop() {
    if (stopping_) return;
    stopping_ = true;
    for (const auto& shard : shards_) {
      if (shard->process) shard->process->close_input();
    }
  }

  void wait_for_output() {
    std::vector<pollfd> outputs;
    for (const auto& shard : shards_) {
      if (shard->process) outputs.push_back({shard->process->output(), POLLIN, 0});
    }
    ::poll(outputs.data(), outputs.size(), 200);
  }

  void collect(int index) {
    Shard& shard = *shards_[index];
    std::vector<std::string> lines;
    const bool open = shard.process->read_lines(lines);
    for (const std::string& line : lines) {
      if (line.starts_with("start ")) {
        shard.running = std::stoull(line.substr(6));
      } else if (line.starts_with("record ")) {
        shard.running.reset();
        add(shard, record_from_json(nlohmann::json::parse(line.substr(7)), "worker"));
      }
    }
    if (open) return;
    const int code = shard.process->wait();
    shard.process.reset();
    if (shard.running) {
      const std::uint64_t lost = *shard.running;
      shard.running.reset();
      add(shard, lost_record(lost, code));
      start(index, lost + 1);
    } else if (code != 0) {
      internal_error_ = true;
      fmt::print(stderr, "worker {} ended with code {}\n", index, code);
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

  void add(Shard& shard, Record record) {
    if (!record.skipped && record.verdict != Verdict::kHolds) {
      const Generated generated = generate(sources_, case_seed(options_.seed, record.index));
      record.case_file =
          fmt::format("{}/cases/{}-{}.json", options_.out, options_.seed, record.index);
      write_file(record.case_file, to_json(generated.value).dump(1) + "\n");
      clear_progress();
      print_failure(record);
    }
    shard.records.append(to_json(record).dump());
    summary_.add(std::move(record));
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
    return stop_signal ? kStopped : kHolds;
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
  std::vector<std::unique_ptr<Shard>> shards_;
  Summary summary_;
  Clock::time_point start_ = Clock::now();
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  double shown_ = 0;
  bool stopping_ = false;
  bool internal_error_ = false;
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
  std::fflush(stdout);
}

}  // namespace slotgraph::fuzz

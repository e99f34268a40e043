#include "fuzz/campaign/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>

#include "core/device/device.h"
#include "core/error.h"
#include "core/files.h"
#include "fuzz/campaign/worker.h"
#include "fuzz/execute/execute.h"
#include "fuzz/process/pool.h"
#include "fuzz/process/program.h"
#include "fuzz/process/progress.h"
#include "fuzz/repro/reproducer.h"

namespace slotgraph::fuzz {
namespace {

using Workers = Pool<CaseRequest, CaseReply>;

class Campaign {
 public:
  Campaign(const Options& options, const Sources& sources, const std::string& program)
      : options_(options),
        sources_(sources),
        command_{program,       "--worker",
                 "--seed",      fmt::to_string(options.seed),
                 "--filter",    options.filter,
                 "--scale",     options.large ? "large" : "small",
                 "--scheduler", options.balanced ? "balanced" : "greedy"},
        blocks_(static_cast<std::size_t>(options.jobs)) {
    for (int i = 0; i < options.jobs; ++i)
      records_.emplace_back(fmt::format("{}/records-{}.jsonl", options.out, i));
  }

  int run() {
    stop_on_request();
    Workers workers(command_, options_.jobs);
    workers.run(
        [&](std::size_t worker) { return next_case(blocks_[worker]); },
        [&](std::size_t worker, const CaseRequest& given, const Outcome<CaseReply>& outcome) {
          add(records_[worker], outcome.reply ? outcome.reply->record
                                              : lost_record(given.index, outcome.answer.code));
          return After::kKeep;
        },
        [&] { show_progress(); });
    for (const int code : workers.close()) {
      if (code == 0) continue;
      internal_error_ = true;
      fmt::print(stderr, "a worker ended with code {} after its last case\n", code);
    }
    run_again();
    return finish();
  }

 private:
  struct Block {
    std::uint64_t next = 0;  // index of the case that comes next,
    std::uint64_t left = 0;  // of this many
  };

  // A sample of the cases, each in a fresh process: the same bits must come again.
  void run_again() {
    const std::vector<std::pair<std::uint64_t, std::string>> all(value_digests_.begin(),
                                                                 value_digests_.end());
    const std::size_t sample = std::min(static_cast<std::size_t>(options_.again), all.size());
    std::size_t next = 0;
    Workers workers(command_, options_.jobs);
    workers.run(
        [&](std::size_t) -> std::optional<CaseRequest> {
          if (next == sample || stop_requested()) return std::nullopt;
          return CaseRequest{all[next++ * all.size() / sample].first};
        },
        [&](std::size_t, const CaseRequest& given, const Outcome<CaseReply>& outcome) {
          compare_again(given.index, outcome);
          return After::kRetire;
        });
  }

  void compare_again(std::uint64_t index, const Outcome<CaseReply>& outcome) {
    const std::string& expected = value_digests_.at(index);
    const std::string found = outcome.reply
                                  ? outcome.reply->record.value_digest
                                  : fmt::format("code {} and no record", outcome.answer.code);
    ++again_;
    if (found == expected) return;
    ++again_differ_;
    progress_.clear();
    fmt::print("case {} in a fresh process: values {}, expected {}\n", index, found, expected);
  }

  // Cases that can share a capture go to one worker.
  std::optional<CaseRequest> next_case(Block& block) {
    const bool time_over = options_.seconds > 0 && progress_.seconds() > options_.seconds;
    if (stop_requested() || time_over) return std::nullopt;
    if (block.left == 0) {
      const std::uint64_t size = options_.large ? kLargeBlock : 1;
      block = {next_block_++ * size, size};
    }
    if (options_.cases > 0 && block.next >= options_.cases) return std::nullopt;
    --block.left;
    return CaseRequest{block.next++};
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

  void add(LineFile& records, Record record) {
    if (!record.skipped && record.verdict != Verdict::kHolds) {
      const Generated generated = draw_case(options_, sources_, record.index);
      record.case_file =
          fmt::format("{}/cases/{}-{}.json", options_.out, options_.seed, record.index);
      write_file(record.case_file, to_json(generated.value).dump(1) + "\n");
      progress_.clear();
      confirm_failure(record, generated.value);
      print_failure(record);
    }
    records.append(to_json(record).dump());
    if (options_.again > 0 && !record.value_digest.empty())
      value_digests_[record.index] = record.value_digest;
    summary_.add(std::move(record));
  }

  // A failure is run again, in a process of its own, before it is reported.
  void confirm_failure(Record& record, const Case& value) {
    if (++failures_ > kMostReported) return;
    const std::string folder =
        fmt::format("{}/repro/{}-{}", options_.out, options_.seed, record.index);
    const Observation seen = observation_of(record);
    const Observation again = confirm(program_path("repro"), folder, {{value}, seen});
    record.repro_folder = folder;
    // Of a worker that died it is known only that it did.
    const bool same = record.verdict == Verdict::kUnknown ? again.signature.starts_with("process: ")
                                                          : again.signature == seen.signature;
    if (same) return;
    if (record.verdict == Verdict::kViolated) record.verdict = Verdict::kFlaky;
    record.findings.push_back({"again", "all", "a second run in a fresh process",
                               again.signature.empty() ? "held" : again.signature});
  }

  void show_progress() {
    progress_.show([&] {
      const double now = progress_.seconds();
      double left = options_.seconds > 0 ? options_.seconds - now : 1e9;
      const auto done = static_cast<double>(summary_.cases + summary_.skipped);
      if (options_.cases > 0 && done > 0)
        left = std::min(left, now * (static_cast<double>(options_.cases) / done - 1));
      return fmt::format("{} cases, {:.1f}/s: {}; {:.0f} s left", summary_.cases,
                         static_cast<double>(summary_.cases) / now, to_string(summary_.count),
                         std::max(left, 0.0));
    });
  }

  int finish() {
    progress_.clear();
    const double seconds = progress_.seconds();
    nlohmann::json json = to_json(summary_);
    json["seconds"] = seconds;
    json["seed"] = options_.seed;
    json["jobs"] = options_.jobs;
    json["again"] = {{"cases", again_}, {"differ", again_differ_}};
    const device::Capabilities device = device::capabilities();
    json["device"] = {{"name", device.name}, {"instruction_set", device.instruction_set}};
    write_file(options_.out + "/summary.json", json.dump(1) + "\n");
    print_summary(seconds);
    ExitCode code = exit_code_of(summary_);
    if (again_differ_ > 0) code = worse(code, kViolated);
    if (stop_requested()) code = worse(code, kStopped);
    return internal_error_ ? kInternal : code;
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
    for (const Verdict verdict : kVerdicts)
      row(to_string(verdict).c_str(), summary_.count[verdict]);
    fmt::print(
        "\nrecords and summary.json: {}\nreport: bazel run //:reports -- {}/records-*.jsonl --out "
        "{}/report\n",
        options_.out, options_.out, options_.out);
  }

  const Options& options_;
  const Sources& sources_;
  std::vector<std::string> command_;  // of a worker
  std::deque<LineFile> records_;      // of each worker
  std::vector<Block> blocks_;
  std::uint64_t next_block_ = 0;
  Summary summary_;
  Progress progress_;
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
  if (record.verdict != Verdict::kHolds) print_failure(record);
  return exit_code_of(record.verdict);
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

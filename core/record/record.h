// The record of one executed case: one JSON line. Many records make a summary; merging is
// commutative.
#ifndef CORE_RECORD_RECORD_H_
#define CORE_RECORD_RECORD_H_

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/exit_code.h"
#include "core/record/verdict.h"

namespace slotgraph {

// One difference or broken promise.
struct Finding {
  std::string property;   // `equality`, `addresses`, `memory`, `error`
  std::string execution;  // `native`, `placement`
  std::string where;      // step, microbatch, frame, tensor
  std::string what;       // first differing byte, addresses, message
};

struct Counters {
  std::uint64_t microbatches = 0;
  std::uint64_t frames_captured = 0;  // branches, in all executions
  std::uint64_t replays = 0;          // forward and backward, in all executions
  std::uint64_t tensors_compared = 0;
  std::uint64_t bytes_compared = 0;
  std::uint64_t pool_bytes_slot = 0;
  std::uint64_t pool_bytes_native = 0;

  // One list of names for JSON, sums and tables.
  static constexpr std::array<const char*, 7> kNames = {
      "microbatches",   "frames_captured", "replays",          "tensors_compared",
      "bytes_compared", "pool_bytes_slot", "pool_bytes_native"};
  std::array<std::uint64_t*, 7> fields();
};

struct Record {
  std::uint64_t index = 0;  // in its campaign
  std::uint64_t case_seed = 0;
  std::string case_digest;
  std::string plan;
  std::string schedule;
  // The schedule does not fit the plan: nothing ran, the verdict does not count.
  bool skipped = false;
  bool wrapped = false;
  bool mixed = false;
  bool equal_tokens = false;
  Verdict verdict = Verdict::kUnknown;
  std::vector<Finding> findings;
  std::string case_file;     // of a case that does not hold
  std::string repro_folder;  // its reproducer
  // Of what eager execution showed; equal on machines whose device has the same instruction set. Of
  // where slot graphs place survivors, relative to their arenas: equal on all devices, unless
  // kernels allocate otherwise. Empty where there was none.
  std::string value_digest;
  std::string layout_digest;
  Counters counters;
};

inline constexpr int kRecordSchema = 2;
nlohmann::json to_json(const Record& record);
// `where` names the line in errors. Throws Error (J.., F01).
Record record_from_json(const nlohmann::json& json, const std::string& where);
// Reads a file of JSON lines.
std::vector<Record> read_records(const std::string& path);

struct Summary {
  std::uint64_t cases = 0;  // executed
  std::uint64_t skipped = 0;
  std::uint64_t wrapped = 0;
  std::uint64_t mixed = 0;
  std::uint64_t mixed_and_wrapped = 0;
  std::uint64_t equal_tokens = 0;
  VerdictCounts count;  // of executed cases
  Counters counters;

  void add(Record record);
};
nlohmann::json to_json(const Summary& summary);
// Of a campaign that came to its end: kUnknown without any executed case.
ExitCode exit_code_of(const Summary& summary);

}  // namespace slotgraph

#endif  // CORE_RECORD_RECORD_H_

#include "core/record/record.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_reader.h"

namespace slotgraph {

std::array<std::uint64_t*, 7> Counters::fields() {
  return {&microbatches,   &frames_captured, &replays,          &tensors_compared,
          &bytes_compared, &pool_bytes_slot, &pool_bytes_native};
}

nlohmann::json to_json(const Record& record) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding& finding : record.findings) {
    findings.push_back({{"property", finding.property},
                        {"execution", finding.execution},
                        {"where", finding.where},
                        {"what", finding.what}});
  }
  nlohmann::json json = {{"schema", kRecordSchema},
                         {"index", record.index},
                         {"case_seed", record.case_seed},
                         {"case_digest", record.case_digest},
                         {"plan", record.plan},
                         {"schedule", record.schedule},
                         {"skipped", record.skipped},
                         {"wrapped", record.wrapped},
                         {"mixed", record.mixed},
                         {"equal_tokens", record.equal_tokens},
                         {"verdict", to_string(record.verdict)},
                         {"findings", findings},
                         {"case_file", record.case_file},
                         {"repro_folder", record.repro_folder},
                         {"value_digest", record.value_digest},
                         {"layout_digest", record.layout_digest}};
  Counters counters = record.counters;
  for (std::size_t i = 0; i < Counters::kNames.size(); ++i)
    json[Counters::kNames[i]] = *counters.fields()[i];
  return json;
}

Record record_from_json(const nlohmann::json& json, const std::string& where) {
  const JsonReader reader(json, where);
  const std::int64_t schema = reader.field("schema").integer();
  if (schema != kRecordSchema) {
    throw Error(Error::kInput,
                {"F01", where + "/schema", fmt::to_string(schema), fmt::to_string(kRecordSchema),
                 "use the version of slotgraph that wrote the records"});
  }
  Record record;
  record.index = reader.field("index").unsigned_integer();
  record.case_seed = reader.field("case_seed").unsigned_integer();
  record.case_digest = reader.field("case_digest").text();
  record.plan = reader.field("plan").text();
  record.schedule = reader.field("schedule").text();
  record.skipped = reader.field("skipped").boolean();
  record.wrapped = reader.field("wrapped").boolean();
  record.mixed = reader.field("mixed").boolean();
  record.equal_tokens = reader.field("equal_tokens").boolean();
  record.verdict = verdict_from_json(reader.field("verdict"));
  for (const JsonReader& finding : reader.field("findings").elements()) {
    record.findings.push_back({finding.field("property").text(), finding.field("execution").text(),
                               finding.field("where").text(), finding.field("what").text()});
  }
  record.case_file = reader.field("case_file").text();
  record.repro_folder = reader.field("repro_folder").text();
  record.value_digest = reader.field("value_digest").text();
  record.layout_digest = reader.field("layout_digest").text();
  for (std::size_t i = 0; i < Counters::kNames.size(); ++i) {
    *record.counters.fields()[i] = reader.field(Counters::kNames[i]).unsigned_integer();
  }
  return record;
}

std::vector<Record> read_records(const std::string& path) {
  std::vector<Record> records;
  for (const JsonLine& line : read_json_lines(path))
    records.push_back(record_from_json(line.document, line.where));
  return records;
}

void Summary::add(Record record) {
  if (record.skipped) {
    ++skipped;
    return;
  }
  ++cases;
  wrapped += record.wrapped;
  mixed += record.mixed;
  mixed_and_wrapped += record.mixed && record.wrapped;
  equal_tokens += record.equal_tokens;
  count.add(record.verdict);
  for (std::size_t i = 0; i < Counters::kNames.size(); ++i)
    *counters.fields()[i] += *record.counters.fields()[i];
}

nlohmann::json to_json(const Summary& summary) {
  nlohmann::json json = {{"schema", kRecordSchema},
                         {"cases", summary.cases},
                         {"skipped", summary.skipped},
                         {"wrapped", summary.wrapped},
                         {"mixed", summary.mixed},
                         {"mixed_and_wrapped", summary.mixed_and_wrapped},
                         {"equal_tokens", summary.equal_tokens},
                         {"different_tokens", summary.cases - summary.equal_tokens},
                         {"verdicts", to_json(summary.count)}};
  Counters counters = summary.counters;
  for (std::size_t i = 0; i < Counters::kNames.size(); ++i)
    json[Counters::kNames[i]] = *counters.fields()[i];
  return json;
}

ExitCode exit_code_of(const Summary& summary) { return exit_code_of(summary.count); }

}  // namespace slotgraph

#include "tools/bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/files.h"

namespace slotgraph::bench {
namespace {

std::string number(double value, const std::string& unit) {
  if (unit == "count") return fmt::format("{:.0f}", value);
  return unit == "ratio" ? fmt::format("{:.3f}", value) : fmt::format("{:.2f}", value);
}

std::string text_of(const Row& row) {
  std::string median = number(row.value.median, row.unit);
  if (row.value.repeats == 1) return median;
  return fmt::format("{} [{}–{}]", median, number(row.value.least, row.unit),
                     number(row.value.most, row.unit));
}

}  // namespace

Sample sample_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back(),
          static_cast<int>(values.size())};
}

void Report::add(const Row& row) {
  if (row.section != section_) fmt::print("\n{}\n", row.section);
  section_ = row.section;
  fmt::print("  {:<28} {:<12} {:<44} {:>30} {}\n", row.work, row.mode, row.figure, text_of(row),
             row.unit == "count" || row.unit == "ratio" ? "" : row.unit);
  std::fflush(stdout);
  rows_.push_back(row);
}

void Report::add(const std::string& section, const std::string& work, const std::string& mode,
                 const std::string& figure, const std::string& unit, double value) {
  add({section, work, mode, figure, unit, {value, value, value, 1}});
}

void Report::write(const std::string& folder, const std::string& device) const {
  std::string lines;
  std::string table = fmt::format("Device: {}. Median [least–most].\n", device);
  std::string section;
  for (const Row& row : rows_) {
    lines += nlohmann::json{{"schema", 1},
                            {"device", device},
                            {"section", row.section},
                            {"work", row.work},
                            {"mode", row.mode},
                            {"figure", row.figure},
                            {"unit", row.unit},
                            {"median", row.value.median},
                            {"min", row.value.least},
                            {"max", row.value.most},
                            {"repeats", row.value.repeats}}
                 .dump() +
             "\n";
    if (row.section != section) {
      table += fmt::format(
          "\n### {}\n\n| work | mode | figure | value | unit |\n|---|---|---|---|---|\n",
          row.section);
      section = row.section;
    }
    table += fmt::format("| {} | {} | {} | {} | {} |\n", row.work, row.mode, row.figure,
                         text_of(row), row.unit);
  }
  write_file(folder + "/bench.jsonl", lines);
  write_file(folder + "/bench.md", table);
}

}  // namespace slotgraph::bench

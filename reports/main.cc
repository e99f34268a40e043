#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/exit_code.h"
#include "core/files.h"
#include "core/program.h"
#include "reports/render.h"

namespace slotgraph::reports {
namespace {

int run(int argc, char** argv) {
  CLI::App app("Renders the records of campaigns: junit.xml for CI, summary.md for people.",
               "reports");
  std::vector<std::string> inputs;
  std::string out;
  app.add_option("RECORDS", inputs, "records-*.jsonl of one or more campaigns")->required();
  app.add_option("--out", out, "folder for junit.xml and summary.md")->required();
  app.footer(
      "Example:\n  bazel run //:reports -- slotgraph-out/records-*.jsonl --out "
      "slotgraph-out/report\n"
      "Exit codes: 0 written, 64 wrong flag or input, 74 a file cannot be written.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kHolds : kUsage;
  }
  std::vector<Record> records;
  for (const std::string& input : inputs) {
    const std::vector<Record> more = read_records(from_caller(input));
    records.insert(records.end(), more.begin(), more.end());
  }
  const std::string folder = from_caller(out);
  write_file(folder + "/junit.xml", junit(records));
  write_file(folder + "/summary.md", markdown(records));
  fmt::print("{} records: {}/summary.md, {}/junit.xml\n", records.size(), folder, folder);
  return kHolds;
}

}  // namespace
}  // namespace slotgraph::reports

int main(int argc, char** argv) {
  return slotgraph::run_program("reports", argc, argv, slotgraph::reports::run);
}

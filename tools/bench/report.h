// What a benchmark measured: records for programs, tables for people.
#ifndef TOOLS_BENCH_REPORT_H_
#define TOOLS_BENCH_REPORT_H_

#include <functional>
#include <string>
#include <vector>

namespace slotgraph::bench {

struct Sample {
  double median = 0;
  double least = 0;
  double most = 0;
  int repeats = 1;
};
Sample sample_of(std::vector<double> values);

// One figure. `unit` is us, ms, MiB, ratio or a plain count.
struct Row {
  std::string section;  // `replay`, `capture`, `memory`, ...
  std::string work;     // block, hidden size, dtype, variants
  std::string mode;     // `placement`, ..., or empty
  std::string figure;
  std::string unit;
  Sample value;
};

class Report {
 public:
  // Prints the row as it comes.
  void add(const Row& row);
  void add(const std::string& section, const std::string& work, const std::string& mode,
           const std::string& figure, const std::string& unit, double value);
  // Writes FOLDER/bench.jsonl and FOLDER/bench.md. Throws Error F03.
  void write(const std::string& folder, const std::string& device) const;

 private:
  std::vector<Row> rows_;
  std::string section_;
};

}  // namespace slotgraph::bench

#endif  // TOOLS_BENCH_REPORT_H_

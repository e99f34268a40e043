#ifndef FUZZ_SWEEP_OPTIONS_H_
#define FUZZ_SWEEP_OPTIONS_H_

#include <string>
#include <vector>

namespace slotgraph::fuzz {

struct SweepOptions {
  std::string case_file;  // empty: the reference case
  std::vector<std::string> modes = {"placement", "arena", "checkpoint"};
  std::string fault = "once";  // once, persistent, sticky, capacity, pair
  std::string points = "*";
  std::string every = "class";  // class: first, second and last call of each; call: all
  std::string rules;            // a file of injections, instead of points
  int jobs = 2;
  int pairs = 200;  // sampled, at most; 0: all
  std::string out = "sweep-out";
  bool list = false;
  bool worker = false;
};

// Returns false if the program is to end now, with `exit_code`.
bool parse(int argc, char** argv, SweepOptions& options, int& exit_code);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_SWEEP_OPTIONS_H_

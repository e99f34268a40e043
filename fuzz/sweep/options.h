// Command line of the sweep.
#ifndef FUZZ_SWEEP_OPTIONS_H_
#define FUZZ_SWEEP_OPTIONS_H_

#include <string>
#include <vector>

#include "core/graph/mode.h"
#include "fuzz/fault/injector.h"

namespace slotgraph::fuzz {

struct SweepOptions {
  std::string case_file;  // empty: the reference case
  std::vector<Mode> modes = slot_modes();
  Fault fault = Fault::kOnce;
  bool pair = false;  // a second failure while the first one is undone
  std::string points = "*";
  std::string every = "class";  // class: first, second and last call of each; call: all
  std::string rules;            // a file of injections, instead of points
  int jobs = 2;
  int sample = 0;  // most first failures of a mode, spread evenly; 0: all
  std::string out = "sweep-out";
  bool list = false;
  bool worker = false;
};

// Returns false if the program is to end now, with `exit_code`.
bool parse(int argc, char** argv, SweepOptions& options, int& exit_code);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_SWEEP_OPTIONS_H_

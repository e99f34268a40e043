// What the user asks for.
#ifndef PROBES_CONFORMANCE_OPTIONS_H_
#define PROBES_CONFORMANCE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "probes/conformance/program.h"

namespace slotgraph::conformance {

struct Options {
  std::size_t programs = 1000;  // for each policy
  std::size_t operations = 300;
  std::uint64_t seed = 1;
  std::vector<Policy> policies{kPolicies.begin(), kPolicies.end()};
  int jobs = 2;
  std::string out;       // absolute
  std::size_t full = 3;  // programs of each policy whose logs are kept
  bool compact = false;
  std::string compare;  // absolute; empty: nothing
  bool worker = false;  // runs the programs whose names stand on its standard input
};

// False if the program shall end with `exit_code`: after --help, or a wrong flag.
bool parse(int argc, char** argv, Options& options, int& exit_code);

}  // namespace slotgraph::conformance

#endif  // PROBES_CONFORMANCE_OPTIONS_H_

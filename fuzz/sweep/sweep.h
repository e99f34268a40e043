// A sweep: one operation, run again and again with a failure at its 1st, 2nd, ... fault point,
// until a run in which nothing fires; after each failure every contract is checked. The shape is
// that of Abseil's exception-safety tester.
#ifndef FUZZ_SWEEP_SWEEP_H_
#define FUZZ_SWEEP_SWEEP_H_

#include <functional>
#include <string>
#include <vector>

#include "fuzz/sweep/injector.h"

namespace slotgraph::fuzz {

// Texts of libtorch's errors go on with advice and a stack.
std::string first_line(const std::string& text);

// What must hold after the operation, whether it failed or not.
struct Contract {
  std::string name;
  std::function<std::vector<std::string>()> broken;  // what is wrong; empty: it holds
};

struct Operation {
  std::function<void()> prepare;  // makes the state that the operation starts from; may be empty
  std::function<void()> run;      // what may fail: leaves nothing behind
  std::vector<Contract> contracts;
};

// One run with one injection.
struct Trial {
  Injection injection;
  int fired = 0;                      // how often something failed
  std::string error;                  // what was thrown; empty: the operation came to its end
  std::vector<std::string> findings;  // contracts that are broken: `name: what`
};

// A thrown error must name what was injected.
Trial try_once(const Operation& operation, const Injection& injection,
               const std::function<void(const std::vector<std::string>& stack)>& before = nullptr);

// Each point at N = 1, 2, ... until a run of it fires nothing: the last trial of each point proves
// that there is no further one.
std::vector<Trial> sweep(const Operation& operation, const std::vector<Point>& points, Fault fault);

// Pairs: the first failure at each of these, the second at the 1st, 2nd, ... fault point after it.
std::vector<Trial> sweep_pairs(const Operation& operation, const std::vector<Injection>& first);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_SWEEP_SWEEP_H_

// One trial: an operation is run with a failure injected, and every contract is checked after it.
// The shape is that of Abseil's exception-safety tester.
#ifndef FUZZ_FAULT_TRIAL_H_
#define FUZZ_FAULT_TRIAL_H_

#include <functional>
#include <string>
#include <vector>

#include "fuzz/fault/injector.h"

namespace slotgraph::fuzz {

// Texts of libtorch's errors go on with advice and a stack.
std::string first_line(const std::string& text);

// What must hold after the operation, whether it failed or not.
struct Contract {
  std::string name;
  std::function<std::vector<std::string>()> broken;  // what is wrong; empty: it holds
};

// What is tried.
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

}  // namespace slotgraph::fuzz

#endif  // FUZZ_FAULT_TRIAL_H_

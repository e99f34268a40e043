// What a piece of work throws, for tests.
#ifndef CORE_TESTING_RULE_H_
#define CORE_TESTING_RULE_H_

#include <functional>
#include <string>

#include "core/error.h"

namespace slotgraph::testing {

// The rule of the Error that the work throws; empty if it throws none.
inline std::string rule(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.rule();
  }
  return "";
}

}  // namespace slotgraph::testing

#endif  // CORE_TESTING_RULE_H_

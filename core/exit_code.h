// Exit codes of every slotgraph program.
#ifndef CORE_EXIT_CODE_H_
#define CORE_EXIT_CODE_H_

#include <initializer_list>

namespace slotgraph {

enum ExitCode {
  kHolds = 0,
  kViolated = 1,
  kUnknown = 2,
  kStopped = 3,
  kUsage = 64,  // wrong flag or input
  kInternal = 70,
  kInputOutput = 74,
};

// The one to end with if both apply: what makes the others meaningless goes first, and a violation
// is never hidden by what is not known.
constexpr ExitCode worse(ExitCode a, ExitCode b) {
  for (const ExitCode code : {kInternal, kInputOutput, kUsage, kViolated, kUnknown, kStopped}) {
    if (a == code || b == code) return code;
  }
  return kHolds;
}

}  // namespace slotgraph

#endif  // CORE_EXIT_CODE_H_

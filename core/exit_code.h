// Exit codes of every slotgraph program. If several apply: 70, 74, 1, 2, 3, 0 in that order.
#ifndef CORE_EXIT_CODE_H_
#define CORE_EXIT_CODE_H_

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

}  // namespace slotgraph

#endif  // CORE_EXIT_CODE_H_

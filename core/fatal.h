// The end of a process whose state cannot be recovered.
#ifndef CORE_FATAL_H_
#define CORE_FATAL_H_

#include <string>

namespace slotgraph {

// Prints `slotgraph: fatal: TEXT` to stderr and ends the process at once with exit code 70, without
// destructors: they would work on broken state. For what cannot be undone and would change results
// without notice.
[[noreturn]] void fatal(const std::string& text);

}  // namespace slotgraph

#endif  // CORE_FATAL_H_

// What every program does around its own work.
#ifndef CORE_PROGRAM_H_
#define CORE_PROGRAM_H_

#include "core/error.h"
#include "core/exit_code.h"

namespace slotgraph {

// What a program ends with that an error of this kind ends.
ExitCode exit_code_of(Error::Kind kind);

// Calls `run`, and turns what it throws into a message on standard error and an exit code. A child
// process that dies does not end this one by SIGPIPE. Call it from main only.
int run_program(const char* name, int argc, char** argv, int (*run)(int argc, char** argv));

}  // namespace slotgraph

#endif  // CORE_PROGRAM_H_

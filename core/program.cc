#include "core/program.h"

#include <fmt/format.h>

#include <csignal>
#include <exception>

namespace slotgraph {

ExitCode exit_code_of(Error::Kind kind) {
  switch (kind) {
    case Error::kInput:
      return kUsage;
    case Error::kFile:
      return kInputOutput;
    case Error::kNoDevice:
      return kUnknown;
    case Error::kContract:
    case Error::kInternal:
      return kInternal;
  }
  return kInternal;
}

int run_program(const char* name, int argc, char** argv, int (*run)(int, char**)) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return exit_code_of(error.kind());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: internal error: {}\n", name, error.what());
    return kInternal;
  }
}

}  // namespace slotgraph

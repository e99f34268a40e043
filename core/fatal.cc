#include "core/fatal.h"

#include <cstdio>
#include <cstdlib>

#include "core/exit_code.h"

namespace slotgraph {

void fatal(const std::string& text) {
  (void)std::fprintf(stderr, "slotgraph: fatal: %s\n", text.c_str());
  (void)std::fflush(nullptr);
  std::_Exit(kInternal);
}

}  // namespace slotgraph

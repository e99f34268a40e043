// Runs a program on libtorch's caching allocator, over whatever device is built.
#ifndef PROBES_CONFORMANCE_RUN_H_
#define PROBES_CONFORMANCE_RUN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "probes/conformance/program.h"

namespace slotgraph::conformance {

struct Outcome {
  // A line for each operation: number, operation and result; then, behind bars, the allocator's
  // trace events and the runtime calls. Addresses are hexadecimal, streams sN, private pools pN
  // (the default stream and pool are not named). After them the segments (state.h), the counters,
  // and what was done to give everything back.
  std::string log;
  std::uint64_t operations = 0;
  std::uint64_t events = 0;
  std::uint64_t calls = 0;
  std::map<std::string, std::uint64_t> kinds;       // of operations
  std::map<std::string, std::uint64_t> situations;  // that they led to
  std::size_t left_bytes = 0;  // what did not come back: this process can run no other program
};

// On the calling thread; one at a time. No memory may be allocated on the device.
Outcome run(const Program& program);

}  // namespace slotgraph::conformance

#endif  // PROBES_CONFORMANCE_RUN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/plan/json/fuzz/targets.h"

// The name that libFuzzer calls.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  slotgraph::fuzz_schedule(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

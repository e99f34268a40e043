// The version that reproducers carry: another one may draw, run or judge a case otherwise.
#ifndef FUZZ_REPRO_VERSION_H_
#define FUZZ_REPRO_VERSION_H_

namespace slotgraph::fuzz {

inline constexpr const char* kVersion = "0.6";

}  // namespace slotgraph::fuzz

#endif  // FUZZ_REPRO_VERSION_H_

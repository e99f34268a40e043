// What is known about a promise: its verdict, the name of it, and what several of them say
// together.
#ifndef CORE_RECORD_VERDICT_H_
#define CORE_RECORD_VERDICT_H_

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/exit_code.h"
#include "core/json_reader.h"

namespace slotgraph {

enum class Verdict {
  kHolds,
  kViolated,
  kFlaky,  // it failed, and not again in the same way in a fresh process
  kUnknown,
};

// All of them, in the order in which people read them. Everything below is derived from this list.
inline constexpr std::array kVerdicts = {Verdict::kHolds, Verdict::kViolated, Verdict::kFlaky,
                                         Verdict::kUnknown};

// `holds`, `violated`, `flaky`, `unknown`.
std::string to_string(Verdict verdict);
// Throws Error J04 if the text is no verdict's name.
Verdict verdict_from_json(const JsonReader& reader);

// What a program ends with that found it. A failure that does not come again is a failure.
ExitCode exit_code_of(Verdict verdict);

// How often each verdict was found.
class VerdictCounts {
 public:
  void add(Verdict verdict) { ++counts_[static_cast<std::size_t>(verdict)]; }
  std::uint64_t operator[](Verdict verdict) const {
    return counts_[static_cast<std::size_t>(verdict)];
  }
  std::uint64_t all() const;
  bool operator==(const VerdictCounts&) const = default;

 private:
  std::array<std::uint64_t, kVerdicts.size()> counts_{};
};

// The worst of them; kUnknown if there is none.
ExitCode exit_code_of(const VerdictCounts& counts);
// {"holds": 3, ..}, with every name.
nlohmann::json to_json(const VerdictCounts& counts);
// `3 holds, 1 violated, 0 flaky, 0 unknown`.
std::string to_string(const VerdictCounts& counts);

}  // namespace slotgraph

#endif  // CORE_RECORD_VERDICT_H_

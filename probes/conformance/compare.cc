#include "probes/conformance/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace slotgraph::conformance {
namespace {

struct Tally {
  std::uint64_t programs = 0, operations = 0, events = 0, calls = 0;
  void add(const Result& result) {
    ++programs;
    operations += result.operations;
    events += result.events;
    calls += result.calls;
  }
  std::string text() const {
    return fmt::format("{} programs, {} operations, {} events, {} calls", programs, operations,
                       events, calls);
  }
};

std::string first_difference(const std::string& here, const std::string& golden) {
  std::istringstream ours(here), theirs(golden);
  for (int number = 1;; ++number) {
    std::string our, their;
    const bool more = static_cast<bool>(std::getline(ours, our));
    const bool their_more = static_cast<bool>(std::getline(theirs, their));
    if (!more && !their_more) return "  the kept log is equal: its digest is of another text\n";
    if (our != their || more != their_more)
      return fmt::format("  line {} of the log\n  here:   {}\n  golden: {}\n", number,
                         more ? our : "(the log is over)",
                         their_more ? their : "(the log is over)");
  }
}

}  // namespace

Comparison compare(const Results& results, const Golden& golden) {
  Tally compared, equal;
  std::string first, first_with_log;
  std::uint64_t missing = 0;
  for (const auto& [policy, programs] : results.programs) {
    const std::vector<std::string>& digests = golden.digests.at(policy);
    const std::vector<std::string>& logs = golden.logs.at(policy);
    for (std::size_t i = 0; i < programs.size(); ++i) {
      if (i >= digests.size()) {
        missing += programs.size() - i;
        break;
      }
      compared.add(programs[i]);
      if (programs[i].short_digest() == digests[i]) {
        equal.add(programs[i]);
        continue;
      }
      const std::string name = fmt::format("{} program {}", name_of(policy), i);
      if (first.empty()) first = fmt::format("first that differs: {}\n", name);
      if (first_with_log.empty() && i < logs.size())
        first_with_log = fmt::format("{}:\n{}", name, first_difference(programs[i].log, logs[i]));
    }
  }
  std::string text =
      fmt::format("compared with a run on {} ({})\n{:<10}{}\n{:<10}{}\n", golden.device,
                  golden.instruction_set, "compared", compared.text(), "equal", equal.text());
  if (missing > 0)
    text += fmt::format("{:<10}{} programs have no golden digest\n", "missing", missing);
  return {.equal = missing == 0 && equal.programs == compared.programs && compared.programs > 0,
          .text = text + first + first_with_log};
}

}  // namespace slotgraph::conformance

// The one exception type for bad input, broken contracts and refused work.
#ifndef CORE_ERROR_H_
#define CORE_ERROR_H_

#include <stdexcept>
#include <string>
#include <utility>

namespace slotgraph {

// `[PL04] slot 17, field saved_arena_id: found 3, expected a colour that no live frame has; use …`
// The rule id is stable: tests and tools match it, not the text. docs/rules.md lists all of them.
class Error : public std::runtime_error {
 public:
  struct Parts {
    std::string rule;
    std::string where;
    std::string found;
    std::string expected;
    std::string advice;  // what to do; may be empty
  };
  explicit Error(Parts parts)
      : std::runtime_error("[" + parts.rule + "] " + parts.where + ": found " + parts.found +
                           ", expected " + parts.expected +
                           (parts.advice.empty() ? "" : "; " + parts.advice)),
        parts_(std::move(parts)) {}

  const std::string& rule() const { return parts_.rule; }
  const Parts& parts() const { return parts_; }

 private:
  Parts parts_;
};

}  // namespace slotgraph

#endif  // CORE_ERROR_H_

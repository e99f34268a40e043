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
  // Where the mistake is.
  enum Kind {
    kInput,     // in what a person or a file gave: flags, plans, cases, records
    kFile,      // the system cannot read or write a file
    kContract,  // in the call: the caller, or the module that it passed, breaks the contract
    kNoDevice,  // nowhere: there is no device to work on
    kInternal,  // here
  };
  struct Parts {
    std::string rule;
    std::string where;
    std::string found;
    std::string expected;
    std::string advice;  // what to do; may be empty
  };
  Error(Kind kind, Parts parts)
      : std::runtime_error("[" + parts.rule + "] " + parts.where + ": found " + parts.found +
                           ", expected " + parts.expected +
                           (parts.advice.empty() ? "" : "; " + parts.advice)),
        kind_(kind),
        parts_(std::move(parts)) {}

  Kind kind() const { return kind_; }
  const std::string& rule() const { return parts_.rule; }
  const Parts& parts() const { return parts_; }

 private:
  Kind kind_;
  Parts parts_;
};

}  // namespace slotgraph

#endif  // CORE_ERROR_H_

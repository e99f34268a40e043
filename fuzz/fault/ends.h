// How processes end that a failure ends, and which ends are known.
#ifndef FUZZ_FAULT_ENDS_H_
#define FUZZ_FAULT_ENDS_H_

#include <map>
#include <string>
#include <vector>

namespace slotgraph::fuzz {

// Where libtorch ends the process when a call fails: it frees memory in destructors that may not
// throw. Rows of fatal_points.json.
class FatalTable {
 public:
  // Throws Error J.. Rows of code without a symbol name an offset in a library, which is true of
  // one build of it: they count if the library of this process has the build id that the file
  // gives.
  static FatalTable read(const std::string& path);
  // The row for a failure of the call at the top of the stack under one of the functions below, by
  // its function; empty: none.
  std::string find(const std::vector<std::string>& stack) const;
  // Of each library that this process has in another build: which, what it means and what to do.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Row {
    std::string call;
    std::string frame;
  };
  std::vector<Row> rows_;
  std::vector<std::string> warnings_;
};

// The build id of each library of this process that has one, by file name: hexadecimal.
std::map<std::string, std::string> build_ids();

// How a process ended: exit code (128 + signal), what it wrote to its standard error, how often
// something had failed in it, and where it did last.
struct End {
  int code = 0;
  std::string errors;
  int fired = 0;
  std::vector<std::string> stack;

  // The runtime ended it: it could not undo what it had done (core/fatal.h).
  bool is_fatal() const;
};
// What two such ends of one kind have in common: `code 134, upstream: uncheckedSetDevice` or the
// line that says why, without its numbers.
std::string kind_of_end(const End& end, const FatalTable& table);
// Whether that kind is a row of the table.
bool is_upstream(const std::string& kind);

// The text without its numbers and addresses.
std::string without_numbers(const std::string& text);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_FAULT_ENDS_H_

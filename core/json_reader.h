// Reading JSON with errors that name the place, what was found and what was expected.
#ifndef CORE_JSON_READER_H_
#define CORE_JSON_READER_H_

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace slotgraph {

// Parses text; `where` names it. Throws Error J02: no JSON (with line and column), a number that no
// type holds, or lists and objects nested deeper than kDeepestJson.
nlohmann::json parse_json(const std::string& text, const std::string& where);
inline constexpr int kDeepestJson = 64;

// Reads and parses a file. Throws Error: J01 unreadable, J02 as parse_json.
nlohmann::json read_json_file(const std::string& path);

// A document of a file with one document a line, and the path with its line.
struct JsonLine {
  nlohmann::json document;
  std::string where;
};
// Empty lines are skipped.
std::vector<JsonLine> read_json_lines(const std::string& path);

// A position inside a document: the value and the path to it, for error messages. The document must
// outlive it.
class JsonReader {
 public:
  JsonReader(const nlohmann::json& value, std::string path)
      : value_(value), path_(std::move(path)) {}

  // Throws Error J03 with the path if a field is missing, J04 if a value has another type or is out
  // of range.
  JsonReader field(const std::string& name) const;
  bool has(const std::string& name) const { return value_.is_object() && value_.contains(name); }
  bool is_null() const { return value_.is_null(); }
  std::vector<JsonReader> elements() const;
  // Throws J05 if the object has a field that is not among the names.
  void allow_only(const std::vector<std::string>& names) const;

  std::int64_t integer(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  std::uint64_t unsigned_integer() const;
  double number(double low, double high) const;
  bool boolean() const;
  std::string text() const;
  // A string that is one of the choices.
  std::string choice(const std::vector<std::string>& choices) const;
  std::vector<int> integers(int low, int high) const;

  // Throws J04 here.
  [[noreturn]] void refuse(const std::string& expected) const;
  const std::string& path() const { return path_; }

 private:
  const nlohmann::json& value_;
  std::string path_;
};

}  // namespace slotgraph

#endif  // CORE_JSON_READER_H_

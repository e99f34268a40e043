#include "core/json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace slotgraph {

namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (std::filesystem::is_directory(path)) errno = EISDIR;
  if (!file || file.bad() || std::filesystem::is_directory(path)) {
    throw Error(Error::kInput,
                {"J01", path, fmt::format("an unreadable file ({})", std::strerror(errno)),
                 "a readable JSON file", "check the path and its permissions"});
  }
  return text.str();
}

}  // namespace

nlohmann::json parse_json(const std::string& text, const std::string& where) {
  const auto refuse = [&](const std::string& found) {
    throw Error(Error::kInput, {"J02", where, found, "one JSON document",
                                "the file may be truncated: write it again"});
  };
  const auto limit_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kDeepestJson) refuse(fmt::format("more than {} nested lists", kDeepestJson));
    return true;
  };
  try {
    return nlohmann::json::parse(text, limit_depth);
  } catch (const nlohmann::json::exception& error) {
    const std::string message = error.what();  // starts with the library's own id in brackets
    refuse(message.substr(message.find("] ") + 2));
  }
  return {};
}

nlohmann::json read_json_file(const std::string& path) { return parse_json(read_text(path), path); }

std::vector<JsonLine> read_json_lines(const std::string& path) {
  std::vector<JsonLine> documents;
  std::istringstream text(read_text(path));
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    const std::string where = fmt::format("{}:{}", path, number);
    if (!line.empty()) documents.push_back({parse_json(line, where), where});
  }
  return documents;
}

JsonReader JsonReader::field(const std::string& name) const {
  if (!value_.is_object()) refuse("an object");
  const auto it = value_.find(name);
  if (it == value_.end()) {
    throw Error(Error::kInput, {"J03", path_, "no field `" + name + "`", "that field", "add it"});
  }
  return JsonReader(*it, path_ + "/" + name);
}

std::vector<JsonReader> JsonReader::elements() const {
  if (!value_.is_array()) refuse("a list");
  std::vector<JsonReader> result;
  for (std::size_t i = 0; i < value_.size(); ++i)
    result.emplace_back(value_[i], fmt::format("{}/{}", path_, i));
  return result;
}

void JsonReader::allow_only(const std::vector<std::string>& names) const {
  if (!value_.is_object()) refuse("an object");
  for (const auto& [name, ignored] : value_.items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw Error(Error::kInput, {"J05", path_, "field `" + name + "`",
                                fmt::format("only {}", fmt::join(names, ", ")), "remove it"});
  }
}

void JsonReader::refuse(const std::string& expected) const {
  std::string found = value_.dump();
  if (found.size() > 60) found = found.substr(0, 57) + "...";
  throw Error(Error::kInput, {"J04", path_, found, expected, "correct the value"});
}

std::int64_t JsonReader::integer(std::int64_t low, std::int64_t high) const {
  const std::string expected = fmt::format("an integer from {} to {}", low, high);
  if (!value_.is_number_integer()) refuse(expected);
  const bool huge = value_.is_number_unsigned() &&
                    value_.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max();
  if (huge || value_.get<std::int64_t>() < low || value_.get<std::int64_t>() > high)
    refuse(expected);
  return value_.get<std::int64_t>();
}

std::uint64_t JsonReader::unsigned_integer() const {
  if (!value_.is_number_unsigned()) refuse("an integer from 0 to 18446744073709551615");
  return value_.get<std::uint64_t>();
}

double JsonReader::number(double low, double high) const {
  const std::string expected = fmt::format("a number from {} to {}", low, high);
  if (!value_.is_number()) refuse(expected);
  const double found = value_.get<double>();
  if (!(found >= low && found <= high)) refuse(expected);
  return found;
}

bool JsonReader::boolean() const {
  if (!value_.is_boolean()) refuse("true or false");
  return value_.get<bool>();
}

std::string JsonReader::text() const {
  if (!value_.is_string()) refuse("a string");
  return value_.get<std::string>();
}

std::string JsonReader::choice(const std::vector<std::string>& choices) const {
  const std::string expected = fmt::format("one of {}", fmt::join(choices, ", "));
  if (!value_.is_string()) refuse(expected);
  std::string found = value_.get<std::string>();
  if (std::find(choices.begin(), choices.end(), found) == choices.end()) refuse(expected);
  return found;
}

std::vector<int> JsonReader::integers(int low, int high) const {
  std::vector<int> result;
  for (const JsonReader& element : elements())
    result.push_back(static_cast<int>(element.integer(low, high)));
  return result;
}

}  // namespace slotgraph

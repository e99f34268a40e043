#include "fuzz/process/child.h"

#include <poll.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace slotgraph::fuzz {
namespace {

std::string read_text(const std::string& path, std::uintmax_t from) {
  if (path.empty()) return "";
  std::ifstream file(path);
  file.seekg(static_cast<std::streamoff>(from));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

void Child::give(const nlohmann::json& request) {
  const std::string line = request.dump();
  notes_.clear();
  killed_ = false;
  busy_ = true;
  // A process that has ended since its last answer is replaced.
  for (int i = 0; i < 2; ++i) {
    if (!process_) process_ = std::make_unique<Process>(command_, error_file_);
    std::error_code none;
    errors_before_ = std::filesystem::file_size(error_file_, none);
    if (none) errors_before_ = 0;
    since_ = std::chrono::steady_clock::now();
    if (process_->write_line(line)) return;
    (void)retire();
  }
  process_ = std::make_unique<Process>(command_, error_file_);  // it ends: that is the answer
}

void Child::kill() {
  killed_ = true;
  process_->kill();
}

std::optional<int> Child::retire() {
  if (!process_) return std::nullopt;
  process_->close_input();
  const int code = process_->wait();
  process_.reset();
  return code;
}

double Child::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count();
}

std::optional<Child::Answer> Child::answer() {
  std::vector<std::string> lines;
  const bool open = process_->read_lines(lines);
  std::optional<Answer> result;
  for (const std::string& line : lines) {
    nlohmann::json json = nlohmann::json::parse(line);
    if (json.contains("note")) {
      notes_.push_back(json["note"]);
      continue;
    }
    result = Answer{std::move(json), 0, "", false, notes_};
    busy_ = false;
  }
  if (!open) {
    const int code = process_->wait();
    process_.reset();
    if (busy_)
      result = Answer{nullptr, code, read_text(error_file_, errors_before_), killed_, notes_};
    busy_ = false;
  }
  return result;
}

void wait_for_output(const std::vector<Child*>& children) {
  std::vector<pollfd> outputs;
  for (const Child* const child : children)
    if (!child->idle()) outputs.push_back({child->output(), POLLIN, 0});
  constexpr int milliseconds = 500;
  ::poll(outputs.data(), outputs.size(), milliseconds);
}

}  // namespace slotgraph::fuzz

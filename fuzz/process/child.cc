#include "fuzz/process/child.h"

#include <poll.h>

#include <fstream>
#include <sstream>

namespace slotgraph::fuzz {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

void Child::give(const nlohmann::json& request) {
  if (!process_) process_ = std::make_unique<Process>(command_, error_file_);
  busy_ = true;
  notes_.clear();
  since_ = std::chrono::steady_clock::now();
  process_->write_line(request.dump());
}

void Child::retire() {
  if (!process_) return;
  process_->close_input();
  (void)process_->wait();
  process_.reset();
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
    result = Answer{std::move(json), 0, "", notes_};
    busy_ = false;
  }
  if (!open) {
    const int code = process_->wait();
    process_.reset();
    if (busy_) result = Answer{nullptr, code, read_text(error_file_), notes_};
    busy_ = false;
  }
  return result;
}

Child::Answer Child::wait_for_answer(double patience_seconds) {
  for (;;) {
    wait_for_output({this});
    if (auto found = answer()) return *std::move(found);
    if (seconds() > patience_seconds) kill();
  }
}

void wait_for_output(const std::vector<Child*>& children) {
  std::vector<pollfd> outputs;
  for (const Child* const child : children)
    if (!child->idle()) outputs.push_back({child->output(), POLLIN, 0});
  constexpr int milliseconds = 500;
  ::poll(outputs.data(), outputs.size(), milliseconds);
}

}  // namespace slotgraph::fuzz

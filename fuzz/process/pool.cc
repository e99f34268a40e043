#include "fuzz/process/pool.h"

#include <fmt/format.h>

namespace slotgraph::fuzz {

Workers::Workers(const std::vector<std::string>& command, int count,
                 const std::string& error_folder, double patience_seconds)
    : patience_(patience_seconds) {
  for (int i = 0; i < count; ++i) {
    children_.emplace_back(
        command, error_folder.empty() ? "" : fmt::format("{}/worker-{}.stderr", error_folder, i));
  }
}

void Workers::run(const Next& next, const Take& take, const std::function<void()>& round) {
  for (;;) {
    std::vector<Child*> busy;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (children_[i].idle()) {
        if (const auto request = next(i)) children_[i].give(*request);
      }
      if (!children_[i].idle()) busy.push_back(&children_[i]);
    }
    if (busy.empty()) return;
    wait_for_output(busy);
    for (std::size_t i = 0; i < children_.size(); ++i) {
      Child& child = children_[i];
      if (child.idle()) continue;
      if (const auto answer = child.answer()) {
        if (take(i, *answer) == After::kRetire) child.retire();
      } else if (patience_ > 0 && child.seconds() > patience_) {
        child.kill();
      }
    }
    round();
  }
}

std::vector<int> Workers::close() {
  std::vector<int> codes;
  for (Child& child : children_)
    if (const auto code = child.retire()) codes.push_back(*code);
  return codes;
}

void tell(const nlohmann::json& note) {
  std::cout << nlohmann::json({{"note", note}}).dump() << std::endl;
}

}  // namespace slotgraph::fuzz

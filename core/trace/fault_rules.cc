#include "core/trace/fault_rules.h"

namespace slotgraph::trace {

void FaultRules::install(Call call, FaultRule rule) {
  rules_[static_cast<int>(call)] = Installed{rule, count(call)};
}

void FaultRules::clear() { rules_.fill(std::nullopt); }

std::optional<int> FaultRules::on_call(Call call) {
  const std::uint64_t number = ++counts_[static_cast<int>(call)];
  auto& installed = rules_[static_cast<int>(call)];
  if (!installed) return std::nullopt;
  const std::uint64_t since = number - installed->base;
  if (since < installed->rule.nth) return std::nullopt;
  const int error = installed->rule.error;
  if (!installed->rule.persistent) installed.reset();
  return error;
}

}  // namespace slotgraph::trace

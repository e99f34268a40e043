#include "properties/allocator/subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace slotgraph::allocator {
namespace {

std::vector<std::string> lines_of(const DeviceStates& observations) {
  std::vector<std::string> lines;
  for (int device = 0; device < kDevices; ++device) {
    const DeviceState& seen = observations[device];
    for (const DeviceState::Segment& segment : seen.segments) {
      std::string line =
          fmt::format("device {} {:#x} stream {} pool {} {}:", device, segment.address,
                      segment.stream, segment.pool, segment.small ? "small" : "large");
      for (const DeviceState::Block& block : segment.blocks) {
        const char* const state = block.allocated ? "live" : block.active ? "waiting" : "free";
        line += fmt::format(" [{} {}, {} requested]", block.bytes, state, block.requested);
      }
      lines.push_back(line);
    }
    for (const auto& [name, value] : seen.statistics)
      lines.push_back(fmt::format("device {} {} = {}", device, name, value));
    for (const auto& [pool, count] : seen.use_counts)
      lines.push_back(fmt::format("device {} pool {} use count = {}", device, pool, count));
  }
  return lines;
}

}  // namespace

std::string to_string(const Reply& reply) {
  constexpr const char* kOutcomes[] = {"done", "out of memory", "refused"};
  return fmt::format("{}, allocated [{:#x}], freed [{:#x}]",
                     kOutcomes[static_cast<int>(reply.outcome)], fmt::join(reply.allocated, " "),
                     fmt::join(reply.freed, " "));
}

std::string difference(const DeviceStates& model, const DeviceStates& real) {
  if (model == real) return "";
  std::vector<std::string> predicted = lines_of(model), found = lines_of(real), result;
  std::sort(predicted.begin(), predicted.end());
  std::sort(found.begin(), found.end());
  const auto report = [&](const char* who, const auto& some, const auto& others) {
    std::vector<std::string> only;
    std::set_difference(some.begin(), some.end(), others.begin(), others.end(),
                        std::back_inserter(only));
    for (const std::string& line : only) result.push_back(fmt::format("{}: {}", who, line));
  };
  report("model", predicted, found);
  report("real ", found, predicted);
  return fmt::format("{}", fmt::join(result, "\n"));
}

}  // namespace slotgraph::allocator

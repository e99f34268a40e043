#include "fuzz/sweep/sweep.h"

#include <fmt/format.h>

#include <string_view>

namespace slotgraph::fuzz {
namespace {

// Texts of errors carry libtorch's own stack after this.
std::string first_part(const std::string& text) {
  return text.substr(0, text.find("Exception raised from"));
}

// The texts by which an injected failure is known: a step's own, the runtime's unknown error, and
// running out of memory.
bool names_the_fault(std::string_view error) {
  for (const std::string_view text : {"injected at step", "unknown error", "out of memory",
                                      "unspecified launch failure", "CUDA error"}) {
    if (error.find(text) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

Trial try_once(const Operation& operation, const Injection& injection,
               const std::function<void(const std::vector<std::string>&)>& before) {
  Injector& injector = Injector::instance();
  if (operation.prepare) operation.prepare();
  Trial trial{injection, 0, {}, {}};
  injector.arm(injection, before);
  try {
    operation.run();
  } catch (const std::exception& error) {
    trial.error = first_part(error.what());
  }
  trial.fired = injector.disarm();
  if (!trial.error.empty() && (trial.fired == 0 || !names_the_fault(trial.error)))
    trial.findings.push_back("error: found `" + trial.error +
                             "`, expected one that names the fault");
  for (const Contract& contract : operation.contracts) {
    try {
      for (const std::string& what : contract.broken())
        trial.findings.push_back(contract.name + ": " + what);
    } catch (const std::exception& error) {
      trial.findings.push_back(contract.name + ": threw " + first_part(error.what()));
    }
  }
  return trial;
}

std::vector<Trial> sweep(const Operation& operation, const std::vector<Point>& points,
                         Fault fault) {
  std::vector<Trial> trials;
  for (const Point& point : points) {
    for (std::uint64_t nth = 1;; ++nth) {
      trials.push_back(try_once(operation, {point, nth, fault, 0}));
      if (trials.back().fired == 0) break;
    }
  }
  return trials;
}

std::vector<Trial> sweep_pairs(const Operation& operation, const std::vector<Injection>& first) {
  std::vector<Trial> trials;
  for (Injection injection : first) {
    for (injection.second = 1;; ++injection.second) {
      trials.push_back(try_once(operation, injection));
      if (trials.back().fired < 2) break;
    }
  }
  return trials;
}

}  // namespace slotgraph::fuzz

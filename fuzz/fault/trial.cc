#include "fuzz/fault/trial.h"

#include <fmt/format.h>

#include <utility>

#include "core/trace/calls.h"

namespace slotgraph::fuzz {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Whether the text names one of the points that failed: a step's name, running out of memory, or
// the runtime's error.
bool names_the_fault(const std::string& error, const Injector& injector) {
  for (const std::string& point : injector.failed()) {
    if (!trace::find_call(point) && contains(error, "injected at step " + point)) return true;
    if (trace::find_call(point) &&
        (contains(error, "unknown error") || contains(error, "out of memory")))
      return true;
  }
  return injector.loses_device() && contains(error, "illegal memory access");
}

// The injector is armed while this lives; then `fired` says how often something failed.
class Armed {
 public:
  Armed(const Injection& injection,
        const std::function<void(const std::vector<std::string>&)>& before, int& fired)
      : fired_(fired) {
    Injector::instance().arm(injection, before);
  }
  ~Armed() { fired_ = Injector::instance().disarm(); }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;

 private:
  int& fired_;
};

// What is wrong with how the operation ended.
std::string wrong_end(const Trial& trial, const Injector& injector) {
  if (!trial.error.empty()) {
    if (trial.fired > 0 && names_the_fault(trial.error, injector)) return "";
    return "error: found `" + trial.error + "`, expected one that names the fault";
  }
  // A call may be tried again; a step that throws once must end the operation.
  const bool step = !trace::find_call(trial.injection.point.name);
  const bool hidden =
      trial.fired > 0 && step && trial.injection.second == 0 && !injector.loses_device();
  return hidden ? "error: the failure of a step was swallowed" : "";
}

}  // namespace

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Trial try_once(const Operation& operation, const Injection& injection,
               const std::function<void(const std::vector<std::string>&)>& before) {
  Injector& injector = Injector::instance();
  if (operation.prepare) operation.prepare();
  Trial trial{injection, 0, {}, {}};
  try {
    const Armed armed(injection, before, trial.fired);
    operation.run();
  } catch (const std::exception& error) {
    trial.error = first_line(error.what());
  }
  if (std::string wrong = wrong_end(trial, injector); !wrong.empty())
    trial.findings.push_back(std::move(wrong));
  for (const Contract& contract : operation.contracts) {
    try {
      for (const std::string& what : contract.broken())
        trial.findings.push_back(contract.name + ": " + what);
    } catch (const std::exception& error) {
      trial.findings.push_back(contract.name + ": threw " + first_line(error.what()));
    }
  }
  return trial;
}

}  // namespace slotgraph::fuzz

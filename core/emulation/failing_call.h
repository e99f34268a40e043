// One runtime call that fails, for tests of the emulation and of what stands on it alone.
#ifndef CORE_EMULATION_FAILING_CALL_H_
#define CORE_EMULATION_FAILING_CALL_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "core/emulation/control.h"

namespace slotgraph::testing {

// While it lives, the nth call of that name (from 1, from now on) returns the error and does not
// run; if `persistent`, all later ones too. It is the emulation's observer: there is one at a time.
class FailingCall {
 public:
  FailingCall(std::string name, std::uint64_t nth, int error, bool persistent = false)
      : name_(std::move(name)), nth_(nth), error_(error), persistent_(persistent) {
    slotgraph_emulation_observe(
        [](const char* call, void* self) { return static_cast<FailingCall*>(self)->answer(call); },
        this);
  }
  ~FailingCall() { slotgraph_emulation_observe(nullptr, nullptr); }
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;

 private:
  int answer(const char* call) {
    if (name_ != call) return 0;
    const std::uint64_t number = ++calls_;
    return number == nth_ || (persistent_ && number > nth_) ? error_ : 0;
  }

  const std::string name_;
  const std::uint64_t nth_;
  const int error_;
  const bool persistent_;
  std::atomic<std::uint64_t> calls_{0};
};

}  // namespace slotgraph::testing

#endif  // CORE_EMULATION_FAILING_CALL_H_

// Keeps autograd's backward on the calling thread.
#ifndef CORE_GRAPH_CALLING_THREAD_H_
#define CORE_GRAPH_CALLING_THREAD_H_

#include <c10/core/AutogradState.h>

namespace slotgraph {

// Engine threads may still free tensors after grad() has returned. Warm-up, capture and every run
// whose memory is accounted must not see that.
class CallingThreadGuard {
 public:
  CallingThreadGuard() : before_(c10::AutogradState::get_tls_state().get_multithreading_enabled()) {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  }
  ~CallingThreadGuard() { c10::AutogradState::get_tls_state().set_multithreading_enabled(before_); }
  CallingThreadGuard(const CallingThreadGuard&) = delete;
  CallingThreadGuard& operator=(const CallingThreadGuard&) = delete;

 private:
  bool before_;
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_CALLING_THREAD_H_

// Two threads of which one runs at a time: a deterministic schedule, given by the caller.
#ifndef PROPERTIES_ALLOCATOR_TWO_THREADS_H_
#define PROPERTIES_ALLOCATOR_TWO_THREADS_H_

#include <array>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace slotgraph::allocator {

class TwoThreads {
 public:
  TwoThreads() {
    for (int i = 0; i < 2; ++i) threads_[i] = std::thread([this, i] { serve(i); });
  }
  ~TwoThreads() {
    hand_over(kNobody, nullptr);
    for (std::thread& thread : threads_) thread.join();
  }
  TwoThreads(const TwoThreads&) = delete;
  TwoThreads& operator=(const TwoThreads&) = delete;

  std::thread::id id(int thread) const { return threads_[thread].get_id(); }

  // Runs the call on that thread and waits for its end. Throws what it throws.
  void run(int thread, const std::function<void()>& call) {
    hand_over(thread, &call);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return turn_ == kCaller; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  static constexpr int kCaller = -1, kNobody = -2;

  void hand_over(int to, const std::function<void()>* call) {
    const std::lock_guard lock(mutex_);
    turn_ = to;
    call_ = call;
    changed_.notify_all();
  }

  void serve(int thread) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return turn_ == thread || turn_ == kNobody; });
      if (turn_ == kNobody) return;
      try {
        (*call_)();
      } catch (...) {
        failure_ = std::current_exception();
      }
      turn_ = kCaller;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = kCaller;
  const std::function<void()>* call_ = nullptr;
  std::exception_ptr failure_;
  std::array<std::thread, 2> threads_;
};

}  // namespace slotgraph::allocator

#endif  // PROPERTIES_ALLOCATOR_TWO_THREADS_H_

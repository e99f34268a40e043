#include "core/device/cuda/runtime_calls.h"

namespace slotgraph::device::cuda {
namespace {

struct Thread {
  int ordinal = -1;
  cudaError_t remembered = cudaSuccess;
};
thread_local Thread thread;

}  // namespace

RuntimeCalls& RuntimeCalls::instance() {
  static RuntimeCalls& instance = *new RuntimeCalls();
  return instance;
}

cudaError_t RuntimeCalls::close(trace::Call call, const Arguments& arguments, cudaError_t result) {
  const std::lock_guard lock(mutex_);
  if (thread.ordinal < 0) thread.ordinal = threads_++;
  log_.append({++sequence_, call, thread.ordinal, arguments, static_cast<int>(result)});
  return result;
}

void RuntimeCalls::remember(cudaError_t error) { thread.remembered = error; }

cudaError_t RuntimeCalls::last_error(cudaError_t real, bool take) {
  const cudaError_t remembered = thread.remembered;
  if (take) thread.remembered = cudaSuccess;
  return remembered != cudaSuccess ? remembered : real;
}

void RuntimeCalls::observe(Observer observer, void* context) {
  context_ = context;
  observer_ = observer;
}

std::vector<std::string> RuntimeCalls::log() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines;
  for (const trace::LogEntry& entry : log_.entries()) lines.push_back(to_string(entry));
  return lines;
}

}  // namespace slotgraph::device::cuda

// Work items: host code that stands for a kernel. A work item goes to the current stream through
// the public runtime API, so that stream capture records it instead of running it.
#ifndef CORE_DEVICE_HOST_WORK_H_
#define CORE_DEVICE_HOST_WORK_H_

#include <memory>
#include <utility>

namespace slotgraph::device::host {

class WorkItem {
 public:
  virtual ~WorkItem() = default;
  // Runs in stream order on whichever thread synchronises; once for each replay if it was captured.
  // It must not touch tensors that own device memory. An exception sets the sticky error
  // cudaErrorAssert.
  virtual void run() = 0;
};

// Queues the item on the current stream. The item dies after it has run, or, when it was captured,
// with the last graph and executable that hold it. Throws c10::Error if the runtime refuses.
void submit(std::unique_ptr<WorkItem> item);

template <typename Function>
void submit_function(Function function) {
  struct Item final : WorkItem {
    explicit Item(Function f) : function(std::move(f)) {}
    void run() override { function(); }
    Function function;
  };
  submit(std::make_unique<Item>(std::move(function)));
}

}  // namespace slotgraph::device::host

#endif  // CORE_DEVICE_HOST_WORK_H_

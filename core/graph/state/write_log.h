// Sees what operators write to memory that is not their call's own, and puts it back.
#ifndef CORE_GRAPH_STATE_WRITE_LOG_H_
#define CORE_GRAPH_STATE_WRITE_LOG_H_

#include <ATen/record_function.h>

#include <map>
#include <vector>

#include "core/graph/graph_module.h"

namespace slotgraph {

// While alive, the first write of a dispatched operator on this thread to a storage of the device
// that the open recording (placing_allocator.h) did not allocate keeps the storage's bytes; the
// destructor writes them back, if the storage still lives. Main gradients, counters and other
// tensors that a module reaches by a closure are so what they were, without being named. Work that
// is captured is not executed and changes nothing. Writes to CPU tensors, and of kernels that no
// operator stands for, are not seen.
class WriteLog {
 public:
  WriteLog();
  ~WriteLog();
  WriteLog(const WriteLog&) = delete;
  WriteLog& operator=(const WriteLog&) = delete;

 private:
  using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
  struct Original {
    WeakStorage storage;
    at::Tensor bytes;  // on the CPU
  };
  void see(const at::RecordFunction& function);
  void keep(const at::Tensor& tensor);

  at::CallbackHandle handle_;
  WriteLog* outer_;
  std::map<const void*, Original> kept_;  // by storage; weak references keep the key unique
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_STATE_WRITE_LOG_H_

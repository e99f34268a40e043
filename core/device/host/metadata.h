// Output metadata of an operator call, found by the Meta kernel and cached.
#ifndef CORE_DEVICE_HOST_METADATA_H_
#define CORE_DEVICE_HOST_METADATA_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>
#include <vector>

namespace slotgraph::device::host {

struct TensorMetadata {
  bool defined = false;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  at::ScalarType dtype = at::kFloat;
};

struct CallMetadata {
  // For each return that is a new tensor (one) or a new list (its elements); empty for returns that
  // are arguments.
  std::vector<std::vector<TensorMetadata>> returns;
  // Arguments that the call resizes (out=), with their new metadata.
  std::vector<std::pair<std::size_t, TensorMetadata>> resized;
};

// Looks the call up by operator, argument metadata and scalar values; on a miss runs the Meta
// kernel, or for the operators of an allow-list the CPU kernel on zeros. Exceptions of the kernel
// (wrong shapes) pass through and are not cached. An operator that has neither is an error that
// says its name and what to do. Thread-safe.
std::shared_ptr<const CallMetadata> infer(const c10::OperatorHandle& operation,
                                          const torch::jit::Stack& arguments);

// Index of the argument that return `i` is an alias of, or -1 if it is new.
int aliased_argument(const c10::FunctionSchema& schema, std::size_t i);

}  // namespace slotgraph::device::host

#endif  // CORE_DEVICE_HOST_METADATA_H_

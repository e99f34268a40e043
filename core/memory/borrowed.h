// Tensors over memory that something else owns.
#ifndef CORE_MEMORY_BORROWED_H_
#define CORE_MEMORY_BORROWED_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace slotgraph {

// A storage of the current device over `bytes` at `address` that holds a reference to `owner`, not
// the memory.
c10::Storage borrowed_storage(void* address, std::size_t bytes, std::shared_ptr<const void> owner);

// A tensor over a storage of the device. `offset`: bytes from the storage's start, a multiple of
// the item; sizes and strides in elements, inside the storage. No autograd history.
at::Tensor tensor_over(const c10::Storage& storage, std::size_t offset, at::IntArrayRef sizes,
                       at::IntArrayRef strides, at::ScalarType dtype);

// A tensor with a borrowed storage of its own.
at::Tensor borrowed_tensor(void* address, at::IntArrayRef sizes, at::IntArrayRef strides,
                           at::ScalarType dtype, std::shared_ptr<const void> owner);

// Tensors over the memory of others, with borrowed storages of their own, which span what they
// reach: those that shared a storage share one again. Undefined ones and those without elements
// stay.
std::vector<at::Tensor> borrowed_alike(const std::vector<at::Tensor>& tensors,
                                       const std::shared_ptr<const void>& owner);

}  // namespace slotgraph

#endif  // CORE_MEMORY_BORROWED_H_

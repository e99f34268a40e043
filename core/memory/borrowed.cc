#include "core/memory/borrowed.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <c10/cuda/CUDAFunctions.h>

namespace slotgraph {

c10::Storage borrowed_storage(void* address, std::size_t bytes, std::shared_ptr<const void> owner) {
  const at::Device device(at::kCUDA, c10::cuda::current_device());
  using Owner = std::shared_ptr<const void>;
  at::DataPtr memory(address, device);
  if (owner) {
    const auto release = [](void* context) { delete static_cast<Owner*>(context); };
    memory = at::DataPtr(address, new Owner(std::move(owner)), release, device);
  }
  return {c10::Storage::use_byte_size_t(), bytes, std::move(memory), /*allocator=*/nullptr,
          /*resizable=*/false};
}

at::Tensor tensor_over(const c10::Storage& storage, std::size_t offset, at::IntArrayRef sizes,
                       at::IntArrayRef strides, at::ScalarType dtype) {
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CUDA),
      c10::scalarTypeToTypeMeta(dtype));
  const auto item = static_cast<std::int64_t>(c10::elementSize(dtype));
  result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides,
                                                      static_cast<std::int64_t>(offset) / item);
  return result;
}

at::Tensor borrowed_tensor(void* address, at::IntArrayRef sizes, at::IntArrayRef strides,
                           at::ScalarType dtype, std::shared_ptr<const void> owner) {
  const std::size_t bytes =
      at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  return tensor_over(borrowed_storage(address, bytes, std::move(owner)), 0, sizes, strides, dtype);
}

}  // namespace slotgraph

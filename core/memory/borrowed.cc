#include "core/memory/borrowed.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <map>

#include "core/memory/region.h"

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

std::vector<at::Tensor> borrowed_alike(const std::vector<at::Tensor>& tensors,
                                       const std::shared_ptr<const void>& owner) {
  const auto has_bytes = [](const at::Tensor& tensor) {
    return tensor.defined() && tensor.numel() > 0;
  };
  std::map<const void*, Region> spans;  // by storage; only looked up
  for (const at::Tensor& tensor : tensors) {
    if (!has_bytes(tensor)) continue;
    const Region reached = region_of(tensor);
    const auto [it, first] = spans.emplace(tensor.storage().unsafeGetStorageImpl(), reached);
    if (first) continue;
    std::byte* const end = std::max(it->second.end(), reached.end());
    it->second.begin = std::min(it->second.begin, reached.begin);
    it->second.bytes = static_cast<std::size_t>(end - it->second.begin);
  }
  std::map<const void*, c10::Storage> storages;
  std::vector<at::Tensor> result;
  for (const at::Tensor& tensor : tensors) {
    if (!has_bytes(tensor)) {
      result.push_back(tensor);
      continue;
    }
    const void* const key = tensor.storage().unsafeGetStorageImpl();
    const Region& span = spans.at(key);
    if (!storages.contains(key))
      storages.emplace(key, borrowed_storage(span.begin, span.bytes, owner));
    const auto offset = static_cast<std::size_t>(region_of(tensor).begin - span.begin);
    result.push_back(tensor_over(storages.at(key), offset, tensor.sizes(), tensor.strides(),
                                 tensor.scalar_type()));
  }
  return result;
}

}  // namespace slotgraph

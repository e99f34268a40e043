#include "core/device/host/views.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/copy.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>

namespace slotgraph::device::host {

at::Tensor host_view(const at::Tensor& tensor, const char* operation) {
  if (!tensor.defined()) return tensor;
  const auto copy_flags = [&](const at::Tensor& view) {
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      view.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
    if (tensor.is_conj()) view._set_conj(true);
    if (tensor.is_neg()) view._set_neg(true);
    return view;
  };
  if (tensor.is_cpu()) {
    TORCH_CHECK(tensor.dim() == 0, "Expected all tensors to be on the same device, but ", operation,
                " got a CPU tensor of ", tensor.dim(), " dimensions beside tensors on cuda");
    at::Tensor copied = tensor.detach().clone();
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      copied.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
    return copied;
  }
  TORCH_CHECK(tensor.is_cuda(), operation, " got a tensor on ", tensor.device());
  const c10::Storage& storage = tensor.storage();
  at::DataPtr bytes(const_cast<void*>(storage.data()), at::kCPU);
  auto view = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(bytes)),
      c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  view.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return copy_flags(view);
}

void copy_result(const at::Tensor& from, const at::Tensor& to) {
  if (from.numel() == 0) return;
  const bool dense = from.is_non_overlapping_and_dense() && from.strides() == to.strides() &&
                     from.scalar_type() == to.scalar_type() && !from.is_conj() && !from.is_neg();
  if (dense) {
    std::memcpy(to.data_ptr(), from.const_data_ptr(), from.nbytes());
  } else {
    to.copy_(from);
  }
}

}  // namespace slotgraph::device::host

// Copies between and on devices, and reading one element.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "core/device/host/views.h"
#include "core/device/host/work.h"

namespace slotgraph::device::host {
namespace {

bool same_dense_layout(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && a.is_non_overlapping_and_dense() &&
         a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

void copy_bytes(const at::Tensor& to, const at::Tensor& from, cudaMemcpyKind kind) {
  C10_CUDA_CHECK(cudaMemcpyAsync(to.data_ptr(), from.const_data_ptr(), to.nbytes(), kind,
                                 c10::cuda::getCurrentCUDAStream()));
}

// Device to device: bytes if the layouts agree, else the CPU kernel, which converts and broadcasts.
void copy_on_device(const at::Tensor& to, const at::Tensor& from) {
  if (same_dense_layout(to, from)) {
    if (to.const_data_ptr() != from.const_data_ptr())
      copy_bytes(to, from, cudaMemcpyDeviceToDevice);
    return;
  }
  submit_function([to = host_view(to, "copy_"), from = host_view(from, "copy_")] {
    const at::AutoDispatchBelowADInplaceOrView below;
    to.copy_(from);
  });
}

// What the current stream of `waiting` gets from now on follows what that of `first` has.
void order_streams(at::Device first, at::Device waiting) {
  c10::Event event(c10::DeviceType::CUDA);
  event.record(c10::cuda::getCurrentCUDAStream(first.index()).unwrap());
  event.block(c10::cuda::getCurrentCUDAStream(waiting.index()).unwrap());
}

// Runs on the source's stream; before and after it the two current streams wait for each other.
// What must be converted is converted on the source's device, and laid out on the target's.
void copy_between_devices(const at::Tensor& to, const at::Tensor& from) {
  if (!same_dense_layout(to, from)) {
    const at::Tensor source = from.to(to.scalar_type()).expand_as(to).contiguous();
    const at::Tensor arrived = at::empty_like(to, to.options(), at::MemoryFormat::Contiguous);
    copy_between_devices(arrived, source);
    const c10::OptionalDeviceGuard guard(to.device());
    copy_on_device(to, arrived);
    return;
  }
  order_streams(to.device(), from.device());
  {
    const c10::OptionalDeviceGuard guard(from.device());
    C10_CUDA_CHECK(cudaMemcpyPeerAsync(to.data_ptr(), to.device().index(), from.const_data_ptr(),
                                       from.device().index(), to.nbytes(),
                                       c10::cuda::getCurrentCUDAStream()));
  }
  order_streams(from.device(), to.device());
}

void refuse_pageable_capture(const at::Tensor& host) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  C10_CUDA_CHECK(cudaStreamIsCapturing(c10::cuda::getCurrentCUDAStream(), &status));
  TORCH_CHECK(status == cudaStreamCaptureStatusNone || host.is_pinned(),
              "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU "
              "tensor is pinned. "
              "Please use tensor.pin_memory() or allocate the tensor with pin_memory=True.");
}

void copy_to_device(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  refuse_pageable_capture(from);
  const at::Tensor source =
      same_dense_layout(to, from) ? from : from.to(to.scalar_type()).expand_as(to).contiguous();
  if (same_dense_layout(to, source)) {
    copy_bytes(to, source, cudaMemcpyHostToDevice);
  } else {
    const at::Tensor staged = at::empty_like(source, to.options(), at::MemoryFormat::Contiguous);
    copy_bytes(staged, source, cudaMemcpyHostToDevice);
    copy_on_device(to, staged);
  }
  if (!non_blocking) c10::cuda::getCurrentCUDAStream().synchronize();
}

void copy_to_host(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  refuse_pageable_capture(to);
  const at::Tensor source =
      same_dense_layout(to, from) ? from : from.to(to.scalar_type()).expand_as(to).contiguous();
  if (same_dense_layout(to, source)) {
    copy_bytes(to, source, cudaMemcpyDeviceToHost);
    if (!non_blocking) c10::cuda::getCurrentCUDAStream().synchronize();
    return;
  }
  const at::Tensor staged = at::empty_like(source, to.options(), at::MemoryFormat::Contiguous);
  copy_bytes(staged, source, cudaMemcpyDeviceToHost);
  c10::cuda::getCurrentCUDAStream().synchronize();
  to.copy_(staged);
}

at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (self.is_same(source) || self.numel() == 0) return self;
  const c10::OptionalDeviceGuard guard(self.is_cuda() ? self.device() : source.device());
  if (self.is_cuda() && source.is_cuda() && self.device() != source.device()) {
    copy_between_devices(self, source);
  } else if (self.is_cuda() && source.is_cuda()) {
    copy_on_device(self, source);
  } else if (self.is_cuda()) {
    copy_to_device(self, source, non_blocking);
  } else {
    copy_to_host(self, source, non_blocking);
  }
  return self;
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  const c10::OptionalDeviceGuard guard(self.device());
  c10::cuda::getCurrentCUDAStream().synchronize();
  return at::native::_local_scalar_dense_cpu(host_view(self, "_local_scalar_dense"));
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("copy_", copy_);
  library.impl("_local_scalar_dense", local_scalar_dense);
}

}  // namespace
}  // namespace slotgraph::device::host

// Kernels that make tensors, change their layout or record their use: no work item, or one that
// only moves bytes.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "core/device/host/poison.h"

namespace slotgraph::device::host {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);

void check_supported(std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                     std::optional<bool> pinned) {
  const at::ScalarType type = dtype.value_or(at::get_default_dtype_as_scalartype());
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided,
              "the host device has strided tensors only");
  TORCH_CHECK(!pinned.value_or(false), "Only dense CPU tensors can be pinned");
  TORCH_CHECK(type != at::kHalf,
              "the host device does not serve Half: use BFloat16, Float or Double");
}

at::Tensor finished(at::Tensor tensor) {
  if (tensor.scalar_type() == at::kBool)
    poison_bool(tensor.mutable_data_ptr(), tensor.storage().nbytes());
  return tensor;
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                 std::optional<bool> pinned, std::optional<at::MemoryFormat> format) {
  check_supported(dtype, layout, pinned);
  const c10::OptionalDeviceGuard guard(device);
  return finished(at::detail::empty_generic(
      sizes, caching::get(), kKeys, dtype.value_or(at::get_default_dtype_as_scalartype()), format));
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> pinned) {
  check_supported(dtype, layout, pinned);
  const c10::OptionalDeviceGuard guard(device);
  return finished(
      at::detail::empty_strided_generic(sizes, strides, caching::get(), kKeys,
                                        dtype.value_or(at::get_default_dtype_as_scalartype())));
}

// Gives the storage at least `bytes`, keeping its contents in stream order.
void grow(at::StorageImpl* storage, std::size_t bytes, bool holds_bool) {
  if (storage->nbytes() >= bytes) return;
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  const c10::OptionalDeviceGuard guard(storage->device());
  at::DataPtr grown = caching::get()->allocate(bytes);
  if (holds_bool) poison_bool(grown.get(), bytes);
  if (storage->nbytes() > 0) {
    C10_CUDA_CHECK(cudaMemcpyAsync(grown.get(), storage->data(), storage->nbytes(),
                                   cudaMemcpyDeviceToDevice, c10::cuda::getCurrentCUDAStream()));
  }
  storage->set_data_ptr_noswap(std::move(grown));
  storage->set_nbytes(bytes);
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef sizes,
                          std::optional<at::MemoryFormat> format) {
  auto* const impl = self.unsafeGetTensorImpl();
  const auto strides = c10::contiguous_strides(sizes);
  grow(self.storage().unsafeGetStorageImpl(),
       at::detail::computeStorageNbytes(sizes, strides, self.itemsize(), self.storage_offset()),
       self.scalar_type() == at::kBool);
  impl->set_sizes_and_strides(sizes, strides);
  if (format) impl->empty_tensor_restride(*format);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef sizes,
                        at::IntArrayRef strides) {
  auto* const impl = self.unsafeGetTensorImpl();
  const c10::DimVector layout =
      strides.data() ? c10::DimVector(strides) : c10::contiguous_strides(sizes);
  TORCH_CHECK(source.device() == self.device(),
              "Attempted to set the storage of a tensor on device \"", self.device(),
              "\" to a storage on different device \"", source.device(), "\"");
  grow(source.unsafeGetStorageImpl(),
       at::detail::computeStorageNbytes(sizes, layout, self.itemsize(), offset),
       self.scalar_type() == at::kBool);
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(sizes, layout);
  return self;
}

at::Tensor& set_nothing(at::Tensor& self) {
  return set_storage(self, at::Storage(at::Storage::use_byte_size_t(), 0, caching::get(), true), 0,
                     {0}, {});
}

// The block is not handed out again before the work that the stream holds at its death has run.
void record_stream(at::Tensor& self, c10::Stream stream) {
  caching::recordStream(self.storage().data_ptr(), c10::cuda::CUDAStream(stream));
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("unfold", TORCH_FN(at::native::unfold));
  library.impl("resize_", resize_);
  library.impl("set_.source_Storage_storage_offset", set_storage);
  library.impl("set_.source_Storage",
               TORCH_FN(static_cast<at::Tensor& (*)(at::Tensor&, at::Storage)>(at::native::set_)));
  library.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  library.impl("set_", set_nothing);
  library.impl("record_stream", record_stream);
}

}  // namespace
}  // namespace slotgraph::device::host

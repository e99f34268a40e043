// CPU tensors over device memory, for the kernels inside work items. They own nothing.
#ifndef CORE_DEVICE_HOST_VIEWS_H_
#define CORE_DEVICE_HOST_VIEWS_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace slotgraph::device::host {

// A CPU tensor with the metadata of `tensor` over its bytes. A CPU tensor with one element is
// copied now (a kernel argument is read at the call); a larger CPU tensor is an error that names
// `operation`.
at::Tensor host_view(const at::Tensor& tensor, const char* operation);

// Applies `change` to every tensor of the value, in lists too.
template <typename Change>
void change_tensors(c10::IValue& value, Change change) {
  if (value.isTensor()) {
    value = change(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(change(tensor));
    value = std::move(list);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional<at::Tensor>(change(*tensor)) : std::nullopt);
    }
    value = std::move(list);
  }
}

// Copies `from` to `to`, both CPU tensors of equal sizes; bytes where the layouts agree.
void copy_result(const at::Tensor& from, const at::Tensor& to);

}  // namespace slotgraph::device::host

#endif  // CORE_DEVICE_HOST_VIEWS_H_

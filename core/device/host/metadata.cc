#include "core/device/host/metadata.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/full.h>
#include <c10/core/DefaultDtype.h>
#include <fmt/format.h>

#include <mutex>
#include <string>
#include <unordered_map>

#include "core/device/host/allow_list.h"
#include "core/device/host/quiet.h"
#include "core/device/host/views.h"

namespace slotgraph::device::host {
namespace {

// The cache key: raw bytes of everything that output metadata may depend on.
class Key {
 public:
  // False if the value's kind is unknown: the call is then not cached.
  bool add(const c10::IValue& value) {
    if (value.isNone()) return add_tag('n');
    if (value.isTensor()) return add_tensor(value.toTensor());
    if (value.isInt()) return add_tag('i') && add_bytes(value.toInt());
    if (value.isDouble()) return add_tag('d') && add_bytes(value.toDouble());
    if (value.isBool()) return add_tag('b') && add_bytes(value.toBool());
    if (value.isString()) return add_tag('s') && add_text(value.toStringRef());
    if (value.isDevice())
      return add_tag('v') && add_bytes(value.toDevice().type()) &&
             add_bytes(value.toDevice().index());
    if (value.isIntList()) return add_list('I', value.toIntVector());
    if (value.isDoubleList()) return add_list('D', value.toDoubleVector());
    if (value.isBoolList()) return add_list('B', value.toBoolList().vec());
    if (value.isTensorList()) return add_list('T', value.toTensorVector());
    if (value.isOptionalTensorList()) return add_list('O', value.toOptionalTensorVector());
    return false;
  }
  template <typename T>
  bool add_bytes(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return true;
  }
  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  bool add_tag(char tag) {
    bytes_.push_back(tag);
    return true;
  }
  bool add_text(const std::string& text) {
    add_bytes(text.size());
    bytes_ += text;
    return true;
  }
  bool add_integers(c10::IntArrayRef values) {
    add_bytes(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
    return true;
  }
  bool add_tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) return add_tag('u');
    const auto* const impl = tensor.unsafeGetTensorImpl();
    add_tag(impl->is_wrapped_number() ? 'w' : 't');
    add_tag(tensor.is_cuda() ? 'g' : 'c');
    add_tag(static_cast<char>(tensor.is_conj() + 2 * tensor.is_neg()));
    add_bytes(tensor.scalar_type());
    return add_integers(tensor.sizes()) && add_integers(tensor.strides());
  }
  template <typename T>
  bool add_list(char tag, const std::vector<T>& list) {
    add_tag(tag);
    add_bytes(list.size());
    for (const T& element : list) {
      if constexpr (std::is_same_v<T, at::Tensor>) {
        add_tensor(element);
      } else if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) {
        add_tensor(element.value_or(at::Tensor()));
      } else {
        add_bytes(element);
      }
    }
    return true;
  }
  std::string bytes_;
};

TensorMetadata metadata_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {true, tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

at::Tensor stand_in(const at::Tensor& tensor, at::Device device, double value) {
  if (!tensor.defined()) return tensor;
  const auto options = at::TensorOptions(device).dtype(tensor.scalar_type());
  at::Tensor result;
  if (device.is_cpu()) {  // expanded tensors cannot be filled through themselves
    const auto bytes = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), 1);
    const at::Tensor storage = at::full({static_cast<std::int64_t>(bytes)}, value, options);
    result = storage.as_strided(tensor.sizes(), tensor.strides());
  } else {
    result = at::empty_strided(tensor.sizes(), tensor.strides(), options);
  }
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
    result.unsafeGetTensorImpl()->set_wrapped_number(true);
  return result;
}

// libtorch's backend fallback for Meta only throws, so a computed kernel proves nothing.
bool has_meta_kernel(const c10::OperatorHandle& operation) {
  return operation.hasKernelForDispatchKey(c10::DispatchKey::Meta) ||
         operation.hasKernelForDispatchKey(
             c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

[[noreturn]] void refuse(const c10::OperatorHandle& operation) {
  TORCH_CHECK(false, "the host device cannot serve ", toString(operation.operator_name()),
              ": libtorch_cpu has no Meta kernel for it. If its output sizes depend on argument "
              "sizes only, add its name "
              "to the list in core/device/host/allow_list.cc; if they depend on data, register "
              "synchronising_fallback for it in core/device/host/fallback.cc");
}

CallMetadata run_kernel(const c10::OperatorHandle& operation, const torch::jit::Stack& arguments) {
  const auto& schema = operation.schema();
  const bool has_meta = has_meta_kernel(operation);
  if (!has_meta && !runs_on_zeros(schema.name())) refuse(operation);
  const at::Device device = has_meta ? at::kMeta : at::kCPU;
  const double content = stand_in_value(schema.name());
  torch::jit::Stack stack = arguments;
  for (c10::IValue& value : stack) {
    change_tensors(value, [&](const at::Tensor& tensor) {
      const bool host_scalar = tensor.defined() && tensor.is_cpu() && tensor.dim() == 0;
      return host_scalar ? tensor : stand_in(tensor, device, content);
    });
    if (value.isDevice() && value.toDevice().is_cuda()) value = device;
  }
  const torch::jit::Stack inputs = stack;
  {
    const QuietScope quiet;
    const c10::impl::ExcludeDispatchKeyGuard below(
        c10::autograd_dispatch_keyset_with_ADInplaceOrView);
    operation.callBoxedForDispatchKey(has_meta ? c10::DispatchKey::Meta : c10::DispatchKey::CPU,
                                      stack);
  }
  CallMetadata result;
  for (std::size_t i = 0; i < schema.returns().size(); ++i) {
    std::vector<TensorMetadata> tensors;
    const int alias = aliased_argument(schema, i);
    if (alias < 0) {
      const c10::IValue& value = stack.at(i);
      TORCH_CHECK(value.isTensor() || value.isTensorList(), "the host device cannot serve ",
                  toString(operation.operator_name()), ": return ", i,
                  " is no tensor; register synchronising_fallback "
                  "for it in core/device/host/fallback.cc");
      if (value.isTensor()) tensors.push_back(metadata_of(value.toTensor()));
      if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector())
          tensors.push_back(metadata_of(tensor));
      }
    } else if (arguments[alias].isTensor() && inputs[alias].isTensor() &&
               inputs[alias].toTensor().defined()) {
      const at::Tensor& before = arguments[alias].toTensor();
      const TensorMetadata after = metadata_of(inputs[alias].toTensor());
      if (before.sizes() != after.sizes) result.resized.emplace_back(alias, after);
    }
    result.returns.push_back(std::move(tensors));
  }
  return result;
}

struct Cache {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const CallMetadata>> calls;
};

}  // namespace

int aliased_argument(const c10::FunctionSchema& schema, std::size_t i) {
  const c10::AliasInfo* const alias = schema.returns()[i].alias_info();
  if (!alias) return -1;
  for (std::size_t a = 0; a < schema.arguments().size(); ++a) {
    const c10::AliasInfo* const other = schema.arguments()[a].alias_info();
    if (other && *other == *alias) return static_cast<int>(a);
  }
  return -1;
}

std::shared_ptr<const CallMetadata> infer(const c10::OperatorHandle& operation,
                                          const torch::jit::Stack& arguments) {
  static Cache& cache = *new Cache();
  thread_local Key key;
  key.clear();
  key.add_bytes(&operation.schema());
  key.add_bytes(c10::get_default_dtype().id());
  bool cacheable = true;
  for (const c10::IValue& value : arguments) cacheable = cacheable && key.add(value);
  if (cacheable) {
    const std::lock_guard lock(cache.mutex);
    const auto it = cache.calls.find(key.bytes());
    if (it != cache.calls.end()) return it->second;
  }
  const std::string bytes = key.bytes();  // the kernel may come back here
  auto result = std::make_shared<const CallMetadata>(run_kernel(operation, arguments));
  if (cacheable) {
    const std::lock_guard lock(cache.mutex);
    cache.calls.emplace(bytes, result);
  }
  return result;
}

}  // namespace slotgraph::device::host

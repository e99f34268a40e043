#include "core/device/host/fallback.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <ATen/ops/empty_strided.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <string>
#include <vector>

#include "core/device/host/metadata.h"
#include "core/device/host/quiet.h"
#include "core/device/host/views.h"
#include "core/device/host/work.h"

namespace slotgraph::device::host {
namespace {

// The device of the CUDA tensors, which is one, or else of an explicit device argument.
std::optional<at::Device> device_of(const torch::jit::Stack& arguments) {
  std::optional<at::Device> found, asked;
  const auto note = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_cuda()) return;
    if (!found) found = tensor.device();
    TORCH_CHECK(*found == tensor.device(),
                "Expected all tensors to be on the same device, but found at least two devices, ",
                *found, " and ", tensor.device(), "!");
  };
  for (const c10::IValue& value : arguments) {
    if (value.isTensor()) {
      note(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) note(tensor);
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
        if (tensor) note(*tensor);
    } else if (!asked && value.isDevice() && value.toDevice().is_cuda() &&
               value.toDevice().has_index()) {
      asked = value.toDevice();
    }
  }
  return found ? found : asked;
}

void call_cpu_kernel(const c10::OperatorHandle& operation, torch::jit::Stack& stack) {
  const at::AutoDispatchBelowADInplaceOrView below;
  operation.callBoxedForDispatchKey(c10::DispatchKey::CPU, stack);
}

class KernelItem final : public WorkItem {
 public:
  KernelItem(const c10::OperatorHandle& operation, torch::jit::Stack arguments)
      : operation_(operation), arguments_(std::move(arguments)) {}

  // `view` receives return `position` of the kernel (element `element` of it, if it is a list).
  void add_result(std::size_t position, std::size_t element, at::Tensor view) {
    results_.push_back({position, element, std::move(view)});
  }

  void run() override {
    const QuietScope quiet;
    torch::jit::Stack stack = arguments_;
    call_cpu_kernel(operation_, stack);
    for (const Result& result : results_) {
      const c10::IValue& value = stack[result.position];
      copy_result(value.isTensor() ? value.toTensor() : value.toTensorVector().at(result.element),
                  result.view);
    }
  }

 private:
  struct Result {
    std::size_t position;
    std::size_t element;
    at::Tensor view;
  };
  c10::OperatorHandle operation_;
  torch::jit::Stack arguments_;
  std::vector<Result> results_;
};

void refuse_unserved(const c10::OperatorHandle& operation, const torch::jit::Stack& arguments) {
  bool random = operation.hasTag(at::Tag::nondeterministic_seeded);
  for (const c10::IValue& value : arguments) random = random || value.isGenerator();
  TORCH_CHECK(!random, "the host device cannot serve the random operator ",
              toString(operation.operator_name()),
              ": the CPU generator must not be touched; write a kernel for it in "
              "core/device/host/kernels_random.cc");
  const auto& schema = operation.schema();
  for (std::size_t i = 0; i < schema.returns().size(); ++i) {
    const c10::AliasInfo* const alias = schema.returns()[i].alias_info();
    TORCH_CHECK(
        !alias || alias->isWrite(), "the host device cannot serve ",
        toString(operation.operator_name()),
        ": it returns a view; register a kernel for it in core/device/host/kernels_layout.cc");
  }
  TORCH_CHECK(operation.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU),
              "the host device cannot serve ", toString(operation.operator_name()),
              ": it has no CPU kernel; compose it of other operators");
}

at::Tensor allocate(const TensorMetadata& metadata) {
  return at::empty_strided(metadata.sizes, metadata.strides,
                           at::TensorOptions(at::kCUDA).dtype(metadata.dtype));
}

}  // namespace

void fallback(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const auto& schema = operation.schema();
  const std::size_t count = schema.arguments().size();
  const torch::jit::Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count),
                                    stack->end());
  const c10::OptionalDeviceGuard guard(device_of(arguments));
  refuse_unserved(operation, arguments);
  const auto metadata = infer(operation, arguments);
  for (const auto& [argument, resized] : metadata->resized) {
    const at::Tensor& output = arguments[argument].toTensor();
    at::native::resize_output(output, resized.sizes);
    output.unsafeGetTensorImpl()->set_sizes_and_strides(resized.sizes, resized.strides);
  }
  torch::jit::Stack views = arguments;
  for (c10::IValue& value : views) {
    change_tensors(
        value, [&](const at::Tensor& tensor) { return host_view(tensor, schema.name().c_str()); });
    if (value.isDevice() && value.toDevice().is_cuda()) value = at::Device(at::kCPU);
  }
  auto item = std::make_unique<KernelItem>(operation, std::move(views));
  torch::jit::Stack results;
  for (std::size_t i = 0; i < schema.returns().size(); ++i) {
    if (const int alias = aliased_argument(schema, i); alias >= 0) {
      results.push_back(arguments[alias]);
      continue;
    }
    std::vector<at::Tensor> outputs;
    for (const TensorMetadata& output : metadata->returns[i]) {
      outputs.push_back(output.defined ? allocate(output) : at::Tensor());
      if (output.defined && outputs.back().numel() > 0) {
        item->add_result(i, outputs.size() - 1, host_view(outputs.back(), schema.name().c_str()));
      }
    }
    const bool list = schema.returns()[i].type()->kind() == c10::TypeKind::ListType;
    results.push_back(list ? c10::IValue(outputs) : c10::IValue(outputs.at(0)));
  }
  submit(std::move(item));
  torch::jit::drop(*stack, count);
  for (c10::IValue& result : results) stack->push_back(std::move(result));
}

void synchronising_fallback(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const auto& schema = operation.schema();
  const std::size_t count = schema.arguments().size();
  const torch::jit::Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count),
                                    stack->end());
  const c10::OptionalDeviceGuard guard(device_of(arguments));
  c10::cuda::getCurrentCUDAStream().synchronize();
  torch::jit::Stack views = arguments;
  for (c10::IValue& value : views) {
    change_tensors(
        value, [&](const at::Tensor& tensor) { return host_view(tensor, schema.name().c_str()); });
  }
  call_cpu_kernel(operation, views);
  torch::jit::drop(*stack, count);
  for (c10::IValue& result : views) {
    change_tensors(result, [](const at::Tensor& tensor) { return tensor.to(at::kCUDA); });
    stack->push_back(std::move(result));
  }
}

// Masks among the indices become the positions of their true elements, which waits for the device;
// index tensors of the CPU move to the device.
void indexing_fallback(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const std::size_t count = operation.schema().arguments().size();
  const auto arguments = stack->end() - static_cast<std::ptrdiff_t>(count);
  const at::Tensor self = arguments[0].toTensor();
  const c10::OptionalDeviceGuard guard(self.device());
  const auto indices = arguments[1].to<c10::List<std::optional<at::Tensor>>>();
  c10::List<std::optional<at::Tensor>> expanded;
  for (const at::Tensor& index : at::native::expandTensors(self, indices, true))
    expanded.push_back(index.defined() ? std::optional(index) : std::nullopt);
  arguments[1] = expanded;
  fallback(operation, stack);
}

// A scalar written where one mask is true needs no positions, hence no wait.
at::Tensor& index_put(at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices,
                      const at::Tensor& values, bool accumulate, bool unsafe) {
  if (!accumulate) {
    const auto [possible, mask] = at::native::canDispatchToMaskedFill(self, indices, values);
    if (possible) return self.masked_fill_(mask, values.item());
  }
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_index_put_impl_", "");
  torch::jit::Stack stack{self, indices, values, accumulate, unsafe};
  indexing_fallback(operation, &stack);
  return self;
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  // Their composite kernels would give other values than the CPU kernels.
  for (const char* name :
       {"native_layer_norm", "native_layer_norm_backward", "silu_backward", "mish_backward"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
  }
  for (const char* name : {"nonzero", "masked_select", "equal", "_unique2", "unique_dim",
                           "unique_consecutive", "bincount"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&synchronising_fallback>());
  }
  for (const char* name : {"index.Tensor", "index.Tensor_out"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&indexing_fallback>());
  }
  library.impl("_index_put_impl_", index_put);
}

}  // namespace slotgraph::device::host

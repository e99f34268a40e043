#include "core/graph/state/write_log.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>

#include "core/graph/state/restoration.h"
#include "core/memory/placing_allocator.h"
#include "core/memory/region.h"

namespace slotgraph {
namespace {

thread_local WriteLog* innermost = nullptr;

Region region_of(c10::StorageImpl& storage) {
  return {static_cast<std::byte*>(storage.mutable_data()), storage.nbytes()};
}

bool is_own(const at::Tensor& tensor) {
  const Recording* const recording = Session::active_recording();
  return recording && recording->owns(tensor.storage().data());
}

}  // namespace

WriteLog::WriteLog() : outer_(innermost) {
  innermost = this;
  const auto start = [](const at::RecordFunction& function) {
    if (innermost) innermost->see(function);
    return std::unique_ptr<at::ObserverContext>();
  };
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(start).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

void WriteLog::see(const at::RecordFunction& function) {
  const auto schema = function.operator_schema();
  if (!schema) return;
  const auto& arguments = schema->arguments();
  const auto inputs = function.inputs();
  for (std::size_t i = 0; i < arguments.size() && i < inputs.size(); ++i) {
    const auto* const alias = arguments[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    if (inputs[i].isTensor()) keep(inputs[i].toTensor());
    if (inputs[i].isTensorList()) {
      for (const at::Tensor& tensor : inputs[i].toTensorVector()) keep(tensor);
    }
  }
}

void WriteLog::keep(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage() || tensor.storage().nbytes() == 0) return;
  // Whether a CPU tensor was there before cannot be told.
  if (!tensor.is_cuda() || is_own(tensor)) return;
  if (c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None) return;
  c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  if (kept_.contains(storage)) return;
  const at::DisableRecordFunctionGuard quiet;
  const at::NoGradGuard no_grad;
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(storage->nbytes())}, at::kByte);
  bytes.copy_(bytes_of(region_of(*storage)));
  kept_.emplace(storage,
                Original{WeakStorage(tensor.storage().getWeakStorageImpl()), std::move(bytes)});
}

WriteLog::~WriteLog() {
  at::removeCallback(handle_);
  innermost = outer_;
  const at::NoGradGuard no_grad;
  restore_or_end("tensors that a warm-up wrote to", [&] {
    for (auto& [key, kept] : kept_) {
      if (const auto storage = kept.storage.lock()) bytes_of(region_of(*storage)).copy_(kept.bytes);
    }
  });
}

}  // namespace slotgraph

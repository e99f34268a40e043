#include "core/graph/plain_tensor.h"

#include <ATen/MemoryOverlap.h>
#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>

#include <sstream>

namespace slotgraph {

std::optional<std::string> not_plain(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  const auto keys = tensor.key_set();
  if (keys.has(c10::DispatchKey::Functionalize)) return "a functional wrapper";
  if (keys.has(c10::DispatchKey::Batched) || keys.has(c10::DispatchKey::FuncTorchBatched))
    return "a batched tensor";
  if (keys.has(c10::DispatchKey::Python)) return "a Python subclass";
  if (tensor.is_nested()) return "a nested tensor";
  if (tensor.is_quantized()) return "a quantised tensor";
  if (tensor.is_mkldnn()) return "an MKLDNN tensor";
  if (tensor.layout() != at::kStrided) return "a sparse tensor";
  if (tensor.is_conj() || tensor.is_neg()) return "a lazy conjugate or negative";
  return std::nullopt;
}

std::optional<std::string> no_static_place(const at::Tensor& tensor) {
  if (auto reason = not_plain(tensor)) return reason;
  const at::Device here(at::kCUDA, c10::cuda::current_device());
  if (tensor.device() != here) return fmt::format("a tensor on {}", tensor.device().str());
  if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes)
    return "a tensor whose elements share memory";
  return std::nullopt;
}

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  std::ostringstream text;
  text << tensor.scalar_type() << tensor.sizes() << " on " << tensor.device();
  return text.str();
}

}  // namespace slotgraph

#include "fuzz/fault/state.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/core/AutogradState.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include <sstream>

#include "core/device/device.h"
#include "core/digest.h"

namespace slotgraph::fuzz {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor there = tensor.detach().cpu().contiguous();
  return {static_cast<const char*>(there.const_data_ptr()), there.nbytes()};
}

// Of texts with lines, the first that only one of them has.
std::string difference(const std::string& name, const std::string& found,
                       const std::string& expected) {
  std::istringstream left(found), right(expected);
  std::string a, b;
  while (std::getline(left, a) && std::getline(right, b) && a == b) {
  }
  return fmt::format("{}: found {:.200}, expected {:.200}", name, a, b);
}

}  // namespace

std::string allocator_topology() {
  std::string text;
  for (const caching::SegmentInfo& segment : caching::snapshot().segments) {
    text += fmt::format("{}:{}/{} {:#x}+{}", segment.device, segment.owner_private_pool_id.first,
                        segment.owner_private_pool_id.second, segment.address, segment.total_size);
    for (const caching::BlockInfo& block : segment.blocks)
      text += fmt::format(" {}{}", block.size, block.allocated ? "a" : block.active ? "p" : "f");
    text += "\n";
  }
  return text;
}

StateSnapshot StateSnapshot::take(const std::vector<GraphModule>& modules) {
  device::synchronise();
  caching::emptyCache();
  StateSnapshot snapshot;
  auto& values = snapshot.values_;
  const auto put = [&](const std::string& name, const auto& value) {
    values[name] = fmt::to_string(value);
  };
  const auto stats = caching::getDeviceStats(c10::cuda::current_device());
  put("allocated bytes", stats.allocated_bytes[0].current);
  put("active bytes", stats.active_bytes[0].current);
  put("reserved bytes", stats.reserved_bytes[0].current);
  put("segments and blocks", allocator_topology());
  put("free device memory", device::memory_info().free_bytes);
  const device::Resources resources = device::resources();
  put("graphs", resources.graphs);
  put("open captures", resources.captures);
  put("queued work", resources.queued);
  put("last error", device::last_error());
  put("allocator", fmt::ptr(caching::get()));
  put("allocator settings", c10::CachingAllocator::getAllocatorSettings());
  put("current device", static_cast<int>(c10::cuda::current_device()));
  put("current stream",
      fmt::ptr(static_cast<const void*>(c10::cuda::getCurrentCUDAStream().stream())));
  put("grad mode", at::GradMode::is_enabled());
  put("autocast", at::autocast::is_autocast_enabled(at::kCUDA));
  put("engine threads", c10::AutogradState::get_tls_state().get_multithreading_enabled());
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const Tensors state = state_of(modules[i]);
    for (std::size_t k = 0; k < state.size(); ++k) {
      put(fmt::format("tensor {} of module {}", k, i),
          fmt::format(
              "{} at {}, requires grad {}, grad {}",
              fmt::ptr(static_cast<const void*>(state[k].unsafeGetTensorImpl())),
              state[k].const_data_ptr(), state[k].requires_grad(),
              fmt::ptr(static_cast<const void*>(
                  state[k].grad().defined() ? state[k].grad().unsafeGetTensorImpl() : nullptr))));
    }
  }
  return snapshot;
}

std::vector<std::string> StateSnapshot::differences(const StateSnapshot& before) const {
  std::vector<std::string> result;
  for (const auto& [name, value] : values_) {
    const std::string& expected = before.values_.at(name);
    if (value != expected) result.push_back(difference(name, value, expected));
  }
  return result;
}

std::string contents_digest(const std::vector<GraphModule>& modules) {
  std::string bytes = bytes_of(device::generator().get_state());
  for (const GraphModule& module : modules)
    for (const at::Tensor& tensor : state_of(module)) bytes += bytes_of(tensor);
  return sha256(bytes);
}

}  // namespace slotgraph::fuzz

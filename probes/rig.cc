#include "probes/rig.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>

#include "core/device/device.h"
#include "core/error.h"
#include "core/models/values.h"
#include "core/plan/planner.h"

namespace slotgraph::probes {
namespace {

Plan plan_of(int pipeline_size, int ring, int variants) {
  PlanRequest request;
  request.name = "probe";
  request.shape.pipeline_size = pipeline_size;
  request.layers_per_chunk = {1};
  for (int v = variants; v > 0; --v) request.cp_sizes.push_back(v);
  request.counts = {ring};
  request.ring_length = ring;
  Plan plan = make_plan(request);
  // No two backwards share a place for what they return, so that any order of them is allowed.
  for (int s = 0; s < ring; ++s) plan.gradient_colours[0][s] = s;
  for (Slot& slot : plan.slots) slot.gradient_colour = slot.physical_slot;
  return plan;
}

}  // namespace

Plan frames_in_flight_together(int frames, int variants) {
  return plan_of(frames, frames, variants);
}
Plan frames_one_after_another(int frames) { return plan_of(1, frames, 1); }

at::Tensor values(std::int64_t rows, std::uint64_t seed) {
  return integer_values({rows, kHidden}, at::kFloat, seed).to(at::kCUDA);
}
at::Tensor leaf(std::int64_t rows, std::uint64_t seed) {
  return values(rows, seed).requires_grad_(true);
}

std::string bytes_of(const at::Tensor& tensor) {
  device::synchronise();
  const at::Tensor host = tensor.detach().to(at::kCPU).contiguous();
  return {static_cast<const char*>(host.const_data_ptr()), host.nbytes()};
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && bytes_of(a) == bytes_of(b);
}
bool same_bytes(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return same_bytes(x, y); });
}

bool share_memory(const at::Tensor& a, const at::Tensor& b) {
  return overlap(region_of(a), region_of(b));
}

bool lies_in(const at::Tensor& tensor, const std::vector<Region>& regions) {
  const Region range = region_of(tensor);
  return std::any_of(regions.begin(), regions.end(),
                     [&](const Region& region) { return region.contains(range); });
}

std::ptrdiff_t distance(const at::Tensor& from, const at::Tensor& to) {
  return static_cast<const std::byte*>(to.const_data_ptr()) -
         static_cast<const std::byte*>(from.const_data_ptr());
}

std::size_t allocated_bytes() {
  device::synchronise();
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
  return static_cast<std::size_t>(stats.allocated_bytes[0].current);
}

std::string rule_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.rule();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return "no rule: " + text.substr(0, text.find('\n'));
  }
  return "accepted";
}

}  // namespace slotgraph::probes

#include "core/graph/warmup/profile.h"

#include <map>

namespace slotgraph {
namespace {

const void* storage_address(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.storage().data() : nullptr;
}

bool overlaps_itself(const at::Tensor& tensor) { return !tensor.is_non_overlapping_and_dense(); }

}  // namespace

std::vector<ProfiledAllocation> classify_forward(const std::vector<Allocation>& allocations,
                                                 const Tensors& outputs) {
  std::map<const void*, int> position;
  for (int i = static_cast<int>(outputs.size()) - 1; i >= 0; --i)
    position[storage_address(outputs[i])] = i;  // undefined and empty ones meet at null
  std::vector<ProfiledAllocation> result;
  int rest = 0;
  for (const Allocation& allocation : allocations) {
    ProfiledAllocation profiled{allocation.bytes, std::nullopt};
    if (allocation.alive) {
      const auto output = position.find(allocation.address);
      profiled.role = output != position.end() ? Role{Role::Kind::kOutput, output->second}
                                               : Role{Role::Kind::kRest, rest++};
    }
    result.push_back(profiled);
  }
  return result;
}

std::vector<ProfiledAllocation> classify_backward(const std::vector<Allocation>& allocations,
                                                  const at::Tensor& leading) {
  std::vector<ProfiledAllocation> result;
  for (const Allocation& allocation : allocations) {
    ProfiledAllocation profiled{allocation.bytes, std::nullopt};
    const bool is_leading =
        allocation.alive && leading.defined() && allocation.address == storage_address(leading);
    if (is_leading && !overlaps_itself(leading)) profiled.role = Role{Role::Kind::kGradient, 0};
    result.push_back(profiled);
  }
  return result;
}

std::vector<ProfiledAllocation> merge(const std::vector<ProfiledAllocation>& older,
                                      const std::vector<ProfiledAllocation>& newer) {
  if (older.size() != newer.size()) return newer;
  std::vector<ProfiledAllocation> result = newer;
  int rest = 0;
  for (std::size_t i = 0; i < newer.size(); ++i) {
    if (older[i].bytes != newer[i].bytes) return newer;
    if (!result[i].role) result[i].role = older[i].role;
    if (result[i].role && result[i].role->kind == Role::Kind::kRest)
      result[i].role->position = rest++;
  }
  return result;
}

}  // namespace slotgraph

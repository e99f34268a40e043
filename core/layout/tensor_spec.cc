#include "core/layout/tensor_spec.h"

#include <algorithm>
#include <tuple>

namespace slotgraph {

std::int64_t span_bytes(const TensorSpec& tensor) {
  std::int64_t last = 0;  // element
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] == 0) return 0;
    last += (tensor.sizes[i] - 1) * tensor.strides[i];
  }
  return (last + 1) * tensor.item_bytes;
}

ByteRange range_of(const TensorSpec& tensor) {
  return {tensor.offset, tensor.offset + span_bytes(tensor)};
}

std::vector<Component> cluster(const std::vector<TensorSpec>& tensors,
                               const std::vector<int>& groups) {
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(tensors.size()); ++i) {
    if (groups[i] >= 0 && span_bytes(tensors[i]) > 0) order.push_back(i);
  }
  const auto key = [&](int i) {
    const ByteRange range = range_of(tensors[i]);
    return std::tuple(groups[i], range.begin, range.end, i);
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  std::vector<Component> components;
  int group = -1;
  for (const int i : order) {
    const ByteRange range = range_of(tensors[i]);
    if (groups[i] != group || range.begin >= components.back().range.end)
      components.push_back({range, 1, {}});
    group = groups[i];
    Component& component = components.back();
    component.range.end = std::max(component.range.end, range.end);
    component.alignment = std::max<std::int64_t>(component.alignment, tensors[i].item_bytes);
    component.members.push_back(i);
  }
  for (Component& component : components)
    component.range.begin -= component.range.begin % component.alignment;
  return components;
}

}  // namespace slotgraph

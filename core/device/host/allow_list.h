// Operators without a Meta kernel whose output metadata the host device learns from their CPU
// kernel, run on zeros.
#ifndef CORE_DEVICE_HOST_ALLOW_LIST_H_
#define CORE_DEVICE_HOST_ALLOW_LIST_H_

#include <string_view>

namespace slotgraph::device::host {

// `name` is the schema name without the overload: `aten::relu`.
bool runs_on_zeros(std::string_view name);

// What such a run's tensors hold: 0, which is a valid index, but 1 for operators that divide
// integers.
double stand_in_value(std::string_view name);

}  // namespace slotgraph::device::host

#endif  // CORE_DEVICE_HOST_ALLOW_LIST_H_

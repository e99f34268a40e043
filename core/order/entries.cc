#include "core/order/entries.h"

#include <cmath>

namespace slotgraph {

bool is_delayed_weight_gradient(double entry) {
  return entry < -1 && entry > -kMostEvents && std::ceil(entry) - entry == 0.5;
}

bool is_event(double entry) {
  return entry == std::trunc(entry) && entry != 0 && std::abs(entry) <= kMostEvents;
}

}  // namespace slotgraph

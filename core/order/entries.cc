#include "core/order/entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "core/error.h"

namespace slotgraph {
namespace {

void refuse(const char* rule, const char* found, const char* expected, const char* advice) {
  throw Error(Error::kInput, {rule, "pipeline communication", found, expected, advice});
}

// Layer numbers of an event's chunk in the order in which the event runs them.
std::vector<int> layers_of(int entry, const std::vector<int>& layers_per_chunk) {
  const int chunk = std::abs(entry) - 1;
  int first = 1;
  for (int c = 0; c < chunk; ++c) first += layers_per_chunk[c];
  std::vector<int> layers;
  layers.reserve(layers_per_chunk[chunk]);
  for (int layer = 0; layer < layers_per_chunk[chunk]; ++layer) layers.push_back(first + layer);
  if (entry < 0) std::reverse(layers.begin(), layers.end());
  return layers;
}

}  // namespace

void check_slot_communication(const PipelineShape& shape, const Communication& communication) {
  if (communication.overlap_p2p && communication.batch_p2p) {
    refuse("OP3", "overlapped and batched P2P", "one of the two", "switch one off");
  }
  if (communication.overlap_p2p && shape.virtual_stages == 0) {
    refuse("OP3", "overlapped P2P without virtual stages", "virtual stages",
           "switch the overlap off");
  }
  if (communication.overlap_p2p_in_warm_up_and_flush && !communication.overlap_p2p) {
    refuse("OP3", "overlap in warm-up and flush alone", "overlapped P2P as well", "switch it on");
  }
  if (communication.overlap_expert_parallel) {
    refuse("OP4", "expert-parallel overlap", "chunks that run as a whole",
           "capture without slots, or switch the overlap off");
  }
  if (communication.delayed_weight_gradient) {
    refuse("OP5", "delayed weight gradients", "weight gradients in the backward",
           "capture without slots, or switch the delay off");
  }
}

bool is_delayed_weight_gradient(double entry) {
  return entry < -1 && entry > -kMostEvents && std::ceil(entry) - entry == 0.5;
}

bool is_event(double entry) {
  return entry == std::trunc(entry) && entry != 0 && std::abs(entry) <= kMostEvents;
}

Order slot_order(const OrderEntries& entries) {
  Order order;
  order.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double entry = entries[i];
    const std::string where = fmt::format("order, entry {}", i);
    if (is_delayed_weight_gradient(entry)) {
      throw Error(Error::kInput, {"OP5", where, fmt::format("{}, a delayed weight gradient", entry),
                                  "forwards and backwards only",
                                  "capture without slots, or switch the delay off"});
    }
    if (!is_event(entry)) {
      throw Error(Error::kInput, {"OR1", where, fmt::format("{}", entry),
                                  "a signed chunk number from 1", "correct the order"});
    }
    order.push_back(static_cast<int>(entry));
  }
  return order;
}

OrderEntries expand_for_expert_overlap(const Order& order, const std::vector<int>& layers_per_chunk,
                                       bool delayed_weight_gradient) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t chunk = static_cast<std::size_t>(std::abs(std::int64_t{order[i]}));
    if (chunk >= 1 && chunk <= layers_per_chunk.size()) continue;
    throw Error(Error::kInput, {"OR1", fmt::format("order, entry {}", i), fmt::to_string(order[i]),
                                fmt::format("a chunk number from 1 to {}, or its negative",
                                            layers_per_chunk.size()),
                                "correct the order"});
  }
  OrderEntries entries;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] > 0) {
      for (const int layer : layers_of(order[i], layers_per_chunk)) entries.push_back(layer);
      continue;
    }
    const std::vector<int> backwards = layers_of(order[i], layers_per_chunk);
    std::vector<int> forwards;
    if (i + 1 < order.size() && order[i + 1] > 0)
      forwards = layers_of(order[++i], layers_per_chunk);
    for (std::size_t k = 0; k < std::max(backwards.size(), forwards.size()); ++k) {
      if (k < forwards.size()) entries.push_back(forwards[k]);
      if (k >= backwards.size()) continue;
      entries.push_back(-backwards[k]);
      const bool last = k + 1 == backwards.size();
      if (delayed_weight_gradient && !last) entries.push_back(-backwards[k] - 0.5);
    }
    if (delayed_weight_gradient && !backwards.empty()) entries.push_back(-backwards.back() - 0.5);
  }
  return entries;
}

}  // namespace slotgraph

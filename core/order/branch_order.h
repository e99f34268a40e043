// The order in which the branches of all variants are captured.
//
// Variants are CP sizes in descending order. Chunk c (from 1) of variant v has the number c + v * V
// in a branch order, V being the chunks of one variant, with or without layers; the sign stays.
#ifndef CORE_ORDER_BRANCH_ORDER_H_
#define CORE_ORDER_BRANCH_ORDER_H_

#include <vector>

#include "core/order/pipeline_order.h"

namespace slotgraph {

enum class BranchArrangement {
  kLockstep,      // every event at once in all variants, the canonical one first
  kVariantMajor,  // the whole schedule of the canonical variant, then of each other one
};

// The CP sizes from `largest` down to `smallest`, halving. Throws Error OB1 unless both are powers
// of two and smallest <= largest.
std::vector<int> cp_sizes(int largest, int smallest);

// The variant that is captured first: the smallest CP size, which is the last one.
int canonical_variant(int variants);

// The number of an order's entry in variant v.
int remap(int entry, int variant, int chunks);

// `base` is one variant's order. Throws Error: OB2 no variant or canonical variant out of range,
// and what check_order(base, chunks) throws.
Order branch_order(const Order& base, int chunks, int variants, int canonical,
                   BranchArrangement arrangement);

}  // namespace slotgraph

#endif  // CORE_ORDER_BRANCH_ORDER_H_

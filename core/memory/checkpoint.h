// Allocator checkpoints of a private pool, and the transactional switch from one to another.
#ifndef CORE_MEMORY_CHECKPOINT_H_
#define CORE_MEMORY_CHECKPOINT_H_

#include <c10/core/Storage.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/memory/pool_topology.h"
#include "core/memory/private_pool.h"

namespace slotgraph {

// Maps each live block to the one storage that owns it, and holds that storage: its deleter is the
// allocator's, its context and address are the block's start.
using Owners = std::map<const void*, c10::Storage>;

// `roots` are storages that may own blocks; others among them, views and storages of the CPU, are
// passed over, and one may come twice. Changes nothing. Throws Error K09: a block with two owners,
// an owner inside a block, or blocks without owner, with their number and sizes.
Owners resolve_owners(const std::map<const void*, std::size_t>& live,
                      const std::vector<c10::Storage>& roots);

// Synchronises the device and retires frees that wait for events. No allocator scope may be open.
// Throws Error K09 if frees keep waiting.
void settle(const PrivatePool& pool);

struct Checkpoint {
  std::shared_ptr<c10::cuda::CUDACachingAllocator::AllocatorState> state;
  std::map<const void*, std::size_t> live;
  Owners owners;
};

// The pool must be settled. Throws what resolve_owners throws, and what the allocator throws.
Checkpoint take_checkpoint(const PrivatePool& pool, const std::vector<c10::Storage>& roots);

// Sets the pool from `current`, what it holds now, to `target`, an earlier checkpoint. Storages
// that own blocks in both keep their bytes and addresses. Those that own blocks in `current` only
// are detached for ever: a valid address, no ownership. No scope may be open, and nobody else may
// allocate from the pool or free to it.
//
// Throws before anything is changed: Error S1 an owner of `current` or `target` that is not what it
// was when the checkpoint was taken; what the allocator throws for S0. A failure after that is
// rolled back: the pool and all owners of `current` are what they were, and the failure is thrown:
// Error S2 a block is not freed, S3 (K09) frees keep waiting, S4 a block of the pool is live that
// `current` does not know, S5, S6, S7 the result is not `target`; exceptions of the allocator as
// they are. If the rollback fails, which R5, R6, R7 find like S5, S6, S7, the process ends
// (core/fatal.h): the text has both errors, `label` and the blocks that are lost.
void switch_pool(const PrivatePool& pool, const Checkpoint& current, const Checkpoint& target,
                 const std::string& label);

}  // namespace slotgraph

#endif  // CORE_MEMORY_CHECKPOINT_H_

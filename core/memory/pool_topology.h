// What a private pool holds: a value to look at and to compare.
#ifndef CORE_MEMORY_POOL_TOPOLOGY_H_
#define CORE_MEMORY_POOL_TOPOLOGY_H_

#include <cstddef>
#include <map>
#include <vector>

#include "core/memory/private_pool.h"

namespace slotgraph {

struct PoolTopology {
  struct Block {
    const void* address = nullptr;
    std::size_t bytes = 0;
    bool allocated = false;
    bool active = false;  // allocated, or waiting for events of streams that used it
    bool operator==(const Block&) const = default;
  };
  struct Segment {  // a device allocation
    const void* address = nullptr;
    std::size_t bytes = 0;
    const void* stream = nullptr;
    std::vector<Block> blocks;  // by address
    bool free() const;          // wholly
    bool operator==(const Segment&) const = default;
  };
  std::vector<Segment> segments;  // by address

  std::size_t reserved_bytes() const;
  std::map<const void*, std::size_t> live() const;  // address → bytes of allocated blocks
  std::map<const void*, std::size_t> pending() const;
  bool operator==(const PoolTopology&) const = default;
};

PoolTopology topology_of(const PrivatePool& pool);

}  // namespace slotgraph

#endif  // CORE_MEMORY_POOL_TOPOLOGY_H_

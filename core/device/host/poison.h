// Poison: dead and fresh blocks of the caching allocator hold a pattern, written in stream order.
#ifndef CORE_DEVICE_HOST_POISON_H_
#define CORE_DEVICE_HOST_POISON_H_

#include <c10/core/Allocator.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace slotgraph::device::host {

// Attaches the trace tracker that fills every block when it is handed out and when it is free
// again. The fill is queued on the block's stream: filling at the time of the host call would hit
// memory that queued work still uses rightly. Once a process.
void attach_block_poison();
void set_block_poison(std::uint8_t byte);
bool set_block_poison_enabled(bool enabled);  // returns the previous setting

// Fills fresh memory of bools on the current stream: they may hold 0 and 1 only, and the lowest bit
// of the pattern says which.
void poison_bool(void* fresh, std::size_t bytes);

// While a stream captures into a pool, only blocks of that pool may be filled by the captured work:
// a fill of any other memory would come back with every replay.
void note_capture(unsigned long long id, c10::MempoolId_t pool);
void forget_capture(unsigned long long id);

}  // namespace slotgraph::device::host

#endif  // CORE_DEVICE_HOST_POISON_H_

/* Control of the emulated CUDA runtime: what the real runtime does not have. Everything else goes
 * through the public CUDA runtime API. All functions are thread-safe; none runs queued work. */
#ifndef CORE_EMULATION_CONTROL_H_
#define CORE_EMULATION_CONTROL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum SlotgraphAddressPolicy {
  SLOTGRAPH_ADDRESS_ASCENDING = 0, /* lowest free address */
  /* highest free 32 MiB chunk, ascending inside it, as an H200's driver */
  SLOTGRAPH_ADDRESS_DESCENDING = 1,
  SLOTGRAPH_ADDRESS_SEEDED = 2 /* a free place drawn from the seed */
};

/* 0 = submission order and no progress by queries; every other seed is one adversarial order that
 * respects streams, events and graph edges only. Also seeds the `seeded` address policy. */
void slotgraph_emulation_set_seed(uint64_t seed);
void slotgraph_emulation_set_address_policy(enum SlotgraphAddressPolicy policy);
/* The byte that fresh device memory holds (default 0xFF: NaN in every floating type). */
void slotgraph_emulation_set_poison(uint8_t byte);
/* Bytes of each device (default 8 GiB); memory already in use stays. */
void slotgraph_emulation_set_capacity(size_t bytes);
/* Number of devices (default 1, at most 8). Returns 0, or -1 if out of range. */
int slotgraph_emulation_set_device_count(int count);

/* `observer` is called before every entry point, on the calling thread and without any lock, with
 * the entry point's name. Another result than 0 is returned to the caller as the call's error, and
 * the call does not run. It must not call the runtime, but for slotgraph_emulation_raise. Null: no
 * observer. Set it while nobody is in a call. */
void slotgraph_emulation_observe(int (*observer)(const char* call, void* context), void* context);
/* Calls of the named entry point so far; of all of them if `call` is null; 0 for an unknown name.
 */
uint64_t slotgraph_emulation_count(const char* call);

/* Keep the newest `entries` log entries (default 65,536). */
void slotgraph_emulation_set_log_limit(size_t entries);
/* Calls `line` once for each entry, oldest first. `line` must not call the runtime. */
void slotgraph_emulation_read_log(void (*line)(const char* text, void* context), void* context);

/* Called by a running host function that has failed: the device gets the sticky error `error`, its
 * queues are dropped, and every later call returns `error`. */
void slotgraph_emulation_raise(int error);

typedef struct SlotgraphEmulationUsage {
  size_t device_bytes; /* allocated by cudaMalloc on all devices */
  size_t pinned_bytes; /* allocated by cudaHostAlloc and cudaMallocHost */
  size_t segments;     /* live cudaMalloc allocations */
  size_t queued;       /* operations that have not run */
  size_t graphs;       /* live graphs and executable graphs */
  size_t events;       /* live events */
  size_t captures;     /* streams that capture */
} SlotgraphEmulationUsage;
SlotgraphEmulationUsage slotgraph_emulation_usage(void);

#ifdef __cplusplus
}
#endif

#endif /* CORE_EMULATION_CONTROL_H_ */

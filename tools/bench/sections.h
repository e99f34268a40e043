// What is measured; each section adds its rows.
#ifndef TOOLS_BENCH_SECTIONS_H_
#define TOOLS_BENCH_SECTIONS_H_

#include <vector>

#include "tools/bench/report.h"
#include "tools/bench/work.h"

namespace slotgraph::bench {

inline constexpr int kRepeats = 11;

// Forward and backward of a block, per variant: each mode in turn with PyTorch's arrangement, and
// eager; clones of parameter gradients, and the time to queue a replay, apart.
void measure_replay(const Work& work, Report& report);
// Milliseconds per callable (a forward and a backward graph), with and without warm-up.
void measure_capture(const Work& work, Report& report);
// Bytes of the pools, against the largest variant alone and all variants in PyTorch's arrangement,
// and against what there must be: the arenas and the transients of one frame.
void measure_memory(const Work& work, Report& report);
// Parameter gradients of all variants against eager execution. Returns whether all are right.
bool check_gradients(const Work& work, Report& report);
// A pool of 1,000 blocks set back to a checkpoint.
void measure_restore(Report& report);
// What the driver takes for graphs, bank after bank, and at which call.
void measure_banks(const Work& work, Report& report);
// 96 and 192 callables: capture, steps, teardown. Returns whether all memory comes back.
bool measure_many(Report& report);

}  // namespace slotgraph::bench

#endif  // TOOLS_BENCH_SECTIONS_H_

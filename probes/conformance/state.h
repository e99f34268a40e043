// What an allocator shows of itself.
#ifndef PROBES_CONFORMANCE_STATE_H_
#define PROBES_CONFORMANCE_STATE_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace slotgraph::conformance {

using SegmentInfo = c10::CachingDeviceAllocator::SegmentInfo;

// All segments, by address.
std::vector<SegmentInfo> segments();

// One line: `segment ADDRESS BYTES small|large [sSTREAM] [pPOOL]:` and its blocks, in order:
// `BYTES` and `a` for allocated (with the bytes that were asked for), `w` for waiting or `f` for
// free.
std::string to_string(const SegmentInfo& segment, int stream, int pool);

// The allocator's counters by name: what is there now, its peak since the last reset_peaks(), what
// came and what went ever; as many of these as the counter has that do not depend on hash tables.
using Counters = std::map<std::string, std::vector<std::int64_t>>;
Counters counters();
void reset_peaks();
// One line for each counter that is not zero all over.
std::string difference(const Counters& before, const Counters& after);

}  // namespace slotgraph::conformance

#endif  // PROBES_CONFORMANCE_STATE_H_

// What the allocator must not be asked, and how everything comes back.
#include <algorithm>

#include "probes/conformance/state.h"
#include "probes/conformance/subject.h"

namespace slotgraph::conformance {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

}  // namespace

void Subject::settle() {
  line_ += "settle";
  (void)caching::getCheckpointState(0, pool_id(kIdlePool));
  unsettled_ = false;
}

bool Subject::may_fail_frees() const {
  if (!open_.empty()) return false;
  for (int pool = 1; pool <= kPools; ++pool)
    if (use_count(pool) == 0) return false;
  return true;
}

Subject::Shapes Subject::shapes_of(int pool) const {
  Shapes shapes;
  for (const SegmentInfo& segment : segments())
    if (pool_ordinal(segment.owner_private_pool_id) == pool)
      shapes[segment.address] = {segment.total_size, segment.stream, segment.is_large,
                                 segment.blocks.size() > 1};
  return shapes;
}

// A split segment that becomes oversize would pass for a whole one.
bool Subject::may_configure(const Settings& settings) const {
  const std::vector<SegmentInfo> all = segments();
  return std::none_of(all.begin(), all.end(), [&](const SegmentInfo& segment) {
    return segment.blocks.size() > 1 && segment.total_size >= settings.max_split_mib * kMiB;
  });
}

// A restore must not fail half way: all blocks of the pool have to come free at once, and every
// segment of the checkpoint has to be there. A pool without holders is refused before anything.
bool Subject::may_restore(const Checkpoint& checkpoint) const {
  if (use_count(checkpoint.pool).value_or(0) == 0) return true;
  for (const Live& block : live_)
    if (block.pool == checkpoint.pool && !(block.uses.empty() && block.scope_uses.empty()))
      return false;
  for (const SegmentInfo& segment : segments()) {
    if (pool_ordinal(segment.owner_private_pool_id) != checkpoint.pool) continue;
    for (const auto& block : segment.blocks)
      if (block.active && !block.allocated) return false;
  }
  const Shapes now = shapes_of(checkpoint.pool);
  return std::all_of(checkpoint.shapes.begin(), checkpoint.shapes.end(), [&](const auto& recorded) {
    const auto& [address, before] = recorded;
    const auto found = now.find(address);
    return found != now.end() && found->second.bytes == before.bytes &&
           found->second.stream == before.stream && found->second.large == before.large &&
           !(before.split && before.bytes >= max_split_bytes_);
  });
}

// Blocks die in a scope: those that were recorded in one must.
void Subject::end() {
  configure({});
  limit(capacity_);
  caching::beginAllocateToPool(0, pool_id(kIdlePool), [](cudaStream_t) { return true; });
  for (const Scope& scope : open_) caching::endAllocateToPool(0, pool_id(scope.pool));
  open_.clear();
  checkpoints_.clear();
  live_.clear();
  caching::endAllocateToPool(0, pool_id(kIdlePool));
  caching::releasePool(0, pool_id(kIdlePool));
  for (int pool = 1; pool <= kPools; ++pool)
    while (use_count(pool).value_or(0) > 0) caching::releasePool(0, pool_id(pool));
  caching::emptyCache();
}

}  // namespace slotgraph::conformance

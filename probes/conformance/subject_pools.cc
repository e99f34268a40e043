// Scopes, private pools, and their checkpoints.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "probes/conformance/subject.h"

namespace slotgraph::conformance {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

void Subject::begin_scope(const Operation& operation) {
  const bool any = operation.stream == kAny;
  line_ +=
      fmt::format(" p{} {}", operation.pool, any ? "all" : fmt::format("s{}", operation.stream));
  const void* const only = any ? nullptr : environment_.stream(operation.stream).stream();
  caching::beginAllocateToPool(0, pool_id(operation.pool),
                               [any, only](cudaStream_t stream) { return any || stream == only; });
  open_.push_back({operation.pool, operation.stream});
}

void Subject::end_scope(const Operation& operation) {
  if (open_.empty()) return skip();
  const auto scope = open_.begin() + operation.number % std::ssize(open_);
  line_ += fmt::format(" p{}", scope->pool);
  caching::endAllocateToPool(0, pool_id(scope->pool));
  open_.erase(scope);
}

void Subject::retain(const Operation& operation) {
  line_ += fmt::format(" p{}", operation.pool);
  caching::get()->createOrIncrefPool(0, pool_id(operation.pool));
}

void Subject::release(const Operation& operation) {
  line_ += fmt::format(" p{}", operation.pool);
  if (use_count(operation.pool).value_or(0) == 0) return skip();
  caching::releasePool(0, pool_id(operation.pool));
}

void Subject::empty_cache(const Operation& operation) {
  line_ += operation.pool == 0 ? " all" : fmt::format(" p{}", operation.pool);
  caching::emptyCache(pool_id(operation.pool));
}

void Subject::checkpoint(const Operation& operation) {
  line_ += fmt::format(" p{}", operation.pool);
  auto state = caching::getCheckpointState(0, pool_id(operation.pool));
  line_ += fmt::format(" = {}", checkpoints_.size());
  checkpoints_.push_back({operation.pool, std::move(state), shapes_of(operation.pool)});
}

// Everybody who owned a block of the pool loses it; this subject owns what is live again.
void Subject::restore(const Operation& operation) {
  if (checkpoints_.empty()) return skip();
  const std::size_t number = operation.number % checkpoints_.size();
  const Checkpoint& checkpoint = checkpoints_[number];
  line_ += fmt::format(" {} p{}", number, checkpoint.pool);
  if (!may_restore(checkpoint)) return skip();
  caching::CheckpointDelta delta = caching::setCheckpointPoolState(0, checkpoint.state);
  std::set<std::uintptr_t> freed;
  for (const void* const pointer : delta.ptrs_freed) freed.insert(address_of(pointer));
  std::erase_if(live_, [&](Live& block) {
    if (!freed.contains(block.address())) return false;
    block.owner.release_context();
    return true;
  });
  std::map<std::uintptr_t, at::DataPtr> allocated;
  for (at::DataPtr& block : delta.dataptrs_allocd)
    allocated[address_of(block.get())] = std::move(block);
  line_ += fmt::format(" freed {:x} live", fmt::join(freed, " "));
  for (auto& [address, block] : allocated) {
    line_ += fmt::format(" {:x}", address);
    const auto shape = std::prev(checkpoint.shapes.upper_bound(address));
    live_.push_back(
        {std::move(block), checkpoint.pool, environment_.stream_ordinal(shape->second.stream)});
  }
}

int Subject::serving_pool(int stream) const {
  const auto scope = std::find_if(open_.rbegin(), open_.rend(), [&](const Scope& open) {
    return open.stream == kAny || open.stream == stream;
  });
  return scope == open_.rend() ? 0 : scope->pool;
}

std::optional<int> Subject::use_count(int pool) const {
  try {
    return caching::get()->getPoolUseCount(0, pool_id(pool));
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

}  // namespace slotgraph::conformance

#include "probes/conformance/subject.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/device/device.h"
#include "core/memory/allocator_config.h"
#include "probes/conformance/state.h"

namespace slotgraph::conformance {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

}  // namespace

Subject::Subject(Environment& environment, std::size_t capacity, std::string& line)
    : environment_(environment), capacity_(capacity), line_(line) {
  configure({});
  limit(capacity_);
}

void Subject::perform(const Operation& operation) {
  line_ += name_of(operation.kind);
  switch (operation.kind) {
    case Kind::kAllocate:
      return allocate(operation);
    case Kind::kFree:
      return free(operation);
    case Kind::kRecordStream:
      return record_stream(operation);
    case Kind::kBeginScope:
      return begin_scope(operation);
    case Kind::kEndScope:
      return end_scope(operation);
    case Kind::kRetain:
      return retain(operation);
    case Kind::kRelease:
      return release(operation);
    case Kind::kEmptyCache:
      return empty_cache(operation);
    case Kind::kCheckpoint:
      return checkpoint(operation);
    case Kind::kRestore:
      return restore(operation);
    case Kind::kConfigure:
      return configure(operation.settings);
    case Kind::kLimit:
      return limit(operation.bytes);
    case Kind::kMemory:
      return memory();
    case Kind::kCount:
      break;
  }
}

void Subject::allocate(const Operation& operation) {
  line_ += fmt::format(" {} s{}", operation.bytes, operation.stream);
  const c10::cuda::CUDAStreamGuard guard(environment_.stream(operation.stream));
  at::DataPtr block = caching::get()->allocate(operation.bytes);
  line_ += fmt::format(" = {:x}", reinterpret_cast<std::uintptr_t>(block.get()));
  if (block) live_.push_back({std::move(block), serving_pool(operation.stream), operation.stream});
}

void Subject::free(const Operation& operation) {
  if (live_.empty()) return skip();
  const auto block = live_.begin() + operation.number % std::ssize(live_);
  line_ += fmt::format(" {:x}", block->address());
  if (open_.empty() && !block->scope_uses.empty()) return skip();
  unsettled_ = unsettled_ ||
               (!open_.empty() && !std::includes(block->scope_uses.begin(), block->scope_uses.end(),
                                                 block->uses.begin(), block->uses.end()));
  live_.erase(block);
}

void Subject::record_stream(const Operation& operation) {
  if (live_.empty()) return skip();
  Live& block = live_[operation.number % live_.size()];
  line_ += fmt::format(" {:x} s{}", block.address(), operation.stream);
  caching::recordStream(block.owner, environment_.stream(operation.stream));
  if (operation.stream == block.stream) return;
  (open_.empty() ? block.uses : block.scope_uses).insert(operation.stream);
  recorded_ = true;
}

void Subject::configure(const Settings& settings) {
  line_ += fmt::format(" {} {} {}",
                       settings.max_split_mib == Settings::kUnlimited
                           ? "unlimited"
                           : fmt::format("{} MiB", settings.max_split_mib),
                       settings.divisions, settings.garbage_threshold);
  if (!may_configure(settings)) return skip();
  set_allocator_config(fmt::format(
      "max_split_size_mb:{},roundup_power2_divisions:{},garbage_collection_threshold:{}",
      settings.max_split_mib, settings.divisions, settings.garbage_threshold));
  max_split_bytes_ = settings.max_split_mib * kMiB;
}

// A fraction that comes to just these bytes.
void Subject::limit(std::size_t bytes) {
  line_ += fmt::format(" {}", bytes);
  const double fraction =
      (static_cast<double>(bytes) + 0.5) / static_cast<double>(environment_.total_bytes());
  caching::setMemoryFraction(bytes == capacity_ ? 1 : fraction, 0);
}

void Subject::memory() {
  const device::MemoryInfo info = device::memory_info();
  line_ += fmt::format(" = {} free of {}", info.free_bytes, info.total_bytes);
}

}  // namespace slotgraph::conformance

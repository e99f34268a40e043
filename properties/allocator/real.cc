#include "properties/allocator/real.h"

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/device/device.h"
#include "core/emulation/control.h"
#include "core/memory/allocator_config.h"

namespace slotgraph::allocator {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using Outcome = Reply::Outcome;

Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

c10::DeviceIndex index(int device) { return static_cast<c10::DeviceIndex>(device); }

void synchronise_all() {
  for (int device = 0; device < kDevices; ++device) {
    const c10::cuda::CUDAGuard guard(index(device));
    device::synchronise();
  }
}

}  // namespace

void initialise_two_devices() {
  slotgraph_emulation_set_device_count(kDevices);
  slotgraph_emulation_set_capacity(kCapacity);
  device::initialise();
}

Real::Real() {
  static c10::CaptureId_t last_pool = c10::CaptureId_t{1} << 41;
  first_pool_ = last_pool;
  last_pool += kPools + 1;
  TORCH_CHECK(slotgraph_emulation_usage().device_bytes == 0, "memory has not come back");
  for (int device = 0; device < kDevices; ++device) {
    const c10::cuda::CUDAGuard guard(index(device));
    void* lowest = nullptr;
    C10_CUDA_CHECK(cudaMalloc(&lowest, 1));
    C10_CUDA_CHECK(cudaFree(lowest));
    bases_[device] = address_of(lowest);
    static std::map<int, std::vector<c10::cuda::CUDAStream>> streams;
    if (streams[device].empty())
      streams[device] = {c10::cuda::getDefaultCUDAStream(index(device)),
                         c10::cuda::getStreamFromPool(false, index(device))};
    streams_.push_back(streams[device]);
    limit(device, 1);
    counters_before_[device] = counters(device);
  }
  configure({});
}

// Blocks die inside a scope: those that were recorded in one must (Model::may_free).
Real::~Real() {
  failing_.reset();
  constexpr int kLast = 0;  // a pool that no program uses
  for (int device = 0; device < kDevices; ++device) {
    begin_scope(device, kLast, {});
    for (int pool = 1; pool <= kPools; ++pool) end_scope(device, pool);
  }
  owners_.clear();
  for (int device = 0; device < kDevices; ++device) {
    end_scope(device, kLast);
    for (int pool = 0; pool <= kPools; ++pool) {
      use_on_oom(device, pool, false);
      attempt([&] {
        while (caching::get()->getPoolUseCount(index(device), id(pool)) > 0)
          caching::releasePool(index(device), id(pool));
        return Reply{};
      });
    }
  }
  synchronise_all();
  attempt([] {
    caching::emptyCache();
    return Reply{};
  });
  for (cudaEvent_t mark : marks_) (void)cudaEventDestroy(mark);
}

c10::cuda::CUDAStream Real::stream(Stream name) const { return streams_[name.device][name.index]; }

Reply Real::attempt(const std::function<Reply()>& call) {
  Reply reply;
  threads_.run(thread_, [&] {
    try {
      reply = call();
    } catch (const c10::OutOfMemoryError&) {
      reply = {Outcome::kOutOfMemory};
    } catch (const c10::Error&) {
      reply = {Outcome::kRefused};
    }
  });
  return reply;
}

Reply Real::allocate(Stream name, std::size_t bytes) {
  return attempt([&] {
    const c10::cuda::CUDAStreamGuard guard(stream(name));
    at::DataPtr block = caching::get()->allocate(bytes);
    const Address address = address_of(block.get());
    if (address != 0) owners_[address] = std::move(block);
    return Reply{Outcome::kDone, {address}};
  });
}

Reply Real::free(Address address) {
  return attempt([&] {
    const auto owner = owners_.find(address);
    if (owner == owners_.end()) {
      caching::raw_delete(reinterpret_cast<void*>(address));
    } else {
      owners_.erase(owner);
    }
    return Reply{};
  });
}

Reply Real::record_stream(Address live, Stream name) {
  return attempt([&] {
    caching::recordStream(owners_.at(live), stream(name));
    return Reply{};
  });
}

Reply Real::begin_scope(int device, int pool, Filter filter) {
  pools_.insert({device, pool});
  const auto thread = filter.thread == kAny ? std::thread::id() : threads_.id(filter.thread);
  const cudaStream_t only =
      filter.stream == kAny ? nullptr : stream({device, filter.stream}).stream();
  return attempt([&] {
    caching::beginAllocateToPool(
        index(device), id(pool),
        [thread, only, any_stream = filter.stream == kAny](cudaStream_t allocating) {
          return (thread == std::thread::id() || thread == std::this_thread::get_id()) &&
                 (any_stream || only == allocating);
        });
    return Reply{};
  });
}

Reply Real::end_scope(int device, int pool) {
  return attempt([&] {
    caching::endAllocateToPool(index(device), id(pool));
    return Reply{};
  });
}

Reply Real::retain(int device, int pool) {
  pools_.insert({device, pool});
  return attempt([&] {
    caching::get()->createOrIncrefPool(index(device), id(pool));
    return Reply{};
  });
}

Reply Real::release(int device, int pool) {
  return attempt([&] {
    caching::releasePool(index(device), id(pool));
    return Reply{};
  });
}

Reply Real::empty_cache(int pool) {
  return attempt([&] {
    caching::emptyCache(pool == 0 ? c10::MempoolId_t{0, 0} : id(pool));
    return Reply{};
  });
}

Reply Real::forbid_splits(int device, int pool) {
  return attempt([&] {
    caching::get()->setNoSplit(index(device), id(pool));
    return Reply{};
  });
}

Reply Real::use_on_oom(int device, int pool, bool use) {
  pools_.insert({device, pool});
  return attempt([&] {
    caching::get()->setUseOnOOM(index(device), id(pool), use);
    return Reply{};
  });
}

Reply Real::take_checkpoint(int device, int pool) {
  return attempt([&] {
    checkpoints_.push_back({device, caching::getCheckpointState(index(device), id(pool))});
    return Reply{};
  });
}

// Everybody who owned a block of the pool loses it; this subject owns what is live again.
Reply Real::restore(int number) {
  return attempt([&] {
    const auto& [device, state] = checkpoints_[number];
    caching::CheckpointDelta delta = caching::setCheckpointPoolState(index(device), state);
    Reply reply;
    for (const void* const freed : delta.ptrs_freed) {
      reply.freed.push_back(address_of(freed));
      owners_.at(address_of(freed)).release_context();
      owners_.erase(address_of(freed));
    }
    for (at::DataPtr& block : delta.dataptrs_allocd) {
      const Address address = address_of(block.get());
      reply.allocated.push_back(address);
      owners_[address] = std::move(block);
    }
    std::sort(reply.freed.begin(), reply.freed.end());
    std::sort(reply.allocated.begin(), reply.allocated.end());
    return reply;
  });
}

Reply Real::mark(Stream name) {
  return attempt([&] {
    const c10::cuda::CUDAStreamGuard guard(stream(name));
    cudaEvent_t event = nullptr;
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    marks_.push_back(event);
    C10_CUDA_CHECK(cudaEventRecord(event, stream(name)));
    return Reply{};
  });
}

Reply Real::wait(int mark) {
  return attempt([&] {
    C10_CUDA_CHECK(cudaEventSynchronize(marks_[mark]));
    return Reply{};
  });
}

Reply Real::fail_next_segment(bool out_of_memory) {
  failing_.reset();
  failing_.emplace("cudaMalloc", 1,
                   out_of_memory ? cudaErrorMemoryAllocation : cudaErrorLaunchFailure);
  return {};
}

Reply Real::configure(const Settings& settings) {
  return attempt([&] {
    set_allocator_config(fmt::format(
        "max_split_size_mb:{},roundup_power2_divisions:{},garbage_collection_threshold:{}",
        settings.max_split_bytes / kMiB, settings.divisions, settings.garbage_threshold));
    return Reply{};
  });
}

Reply Real::limit(int device, double fraction) {
  return attempt([&] {
    caching::setMemoryFraction(fraction, index(device));
    return Reply{};
  });
}

std::map<std::string, std::int64_t> Real::counters(int device) const {
  const auto statistics = caching::getDeviceStats(index(device));
  return {{"allocations", statistics.allocation[0].allocated},
          {"retries", statistics.num_alloc_retries},
          {"out of memory", statistics.num_ooms},
          {"synchronisations", statistics.num_sync_all_streams},
          {"device allocations", statistics.num_device_alloc},
          {"device frees", statistics.num_device_free},
          {"oversize allocations", statistics.oversize_allocations.current},
          {"oversize segments", statistics.oversize_segments.current}};
}

DeviceStates Real::states() {
  DeviceStates result;
  const auto snapshot = caching::get()->snapshot({0, 0}, false);
  for (int device = 0; device < kDevices; ++device)
    result[device] = states(device, snapshot.segments);
  return result;
}

DeviceState Real::states(int device,
                          const std::vector<c10::CachingDeviceAllocator::SegmentInfo>& segments) {
  DeviceState seen;
  seen.statistics = counters(device);
  for (auto& [name, value] : seen.statistics) value -= counters_before_[device].at(name);
  const auto statistics = caching::getDeviceStats(index(device));
  const auto add = [&](const std::string& name, const c10::CachingAllocator::StatArray& values) {
    seen.statistics[name + " all"] = values[0].current;
    seen.statistics[name + " small"] = values[1].current;
    seen.statistics[name + " large"] = values[2].current;
  };
  add("allocation", statistics.allocation);
  add("segment", statistics.segment);
  add("active", statistics.active);
  add("inactive split", statistics.inactive_split);
  add("allocated bytes", statistics.allocated_bytes);
  add("reserved bytes", statistics.reserved_bytes);
  add("active bytes", statistics.active_bytes);
  add("inactive split bytes", statistics.inactive_split_bytes);
  add("requested bytes", statistics.requested_bytes);

  for (const auto& segment : segments) {
    if (segment.device != device) continue;
    const auto pool = segment.owner_private_pool_id;
    seen.segments.push_back(
        {segment.address, segment.stream == stream({device, 0}).stream() ? 0 : 1,
         pool == c10::MempoolId_t{0, 0} ? 0 : static_cast<int>(pool.second - first_pool_),
         !segment.is_large});
    for (const auto& block : segment.blocks)
      seen.segments.back().blocks.push_back(
          {block.size, block.active ? block.requested_size : 0, block.allocated, block.active});
  }
  for (const auto& [of, pool] : pools_) {
    if (of != device) continue;
    attempt([&, p = pool] {  // refused unless the pool exists
      seen.use_counts[p] = caching::get()->getPoolUseCount(index(device), id(p));
      return Reply{};
    });
  }
  return seen;
}

}  // namespace slotgraph::allocator

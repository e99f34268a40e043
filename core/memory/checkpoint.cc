#include "core/memory/checkpoint.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "core/device/block_contents.h"
#include "core/device/device.h"
#include "core/error.h"
#include "core/fatal.h"
#include "core/trace/steps.h"

namespace slotgraph {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
using Live = std::map<const void*, std::size_t>;
using trace::Phase;
using trace::Step;

bool has_allocators_deleter(const c10::Storage& storage) {
  return storage.data_ptr().get_deleter() == caching::get()->raw_deleter();
}

bool owns(const c10::Storage& storage, const void* address) {
  return storage && storage.data() == address && has_allocators_deleter(storage) &&
         storage.data_ptr().get_context() == address;
}

std::string sizes_of(const Live& blocks) {
  std::vector<std::string> texts;
  for (const auto& [address, bytes] : blocks)
    texts.push_back(fmt::format("{} ({} bytes)", address, bytes));
  return fmt::format("{} blocks: {}", texts.size(), fmt::join(texts, ", "));
}

// The blocks of one that the other has not, or not with this size.
Live without(const Live& blocks, const Live& others) {
  Live result;
  for (const auto& [address, bytes] : blocks) {
    const auto it = others.find(address);
    if (it == others.end() || it->second != bytes) result[address] = bytes;
  }
  return result;
}

void check_owners(const Checkpoint& checkpoint, const char* rule, const std::string& where) {
  if (checkpoint.owners.size() != checkpoint.live.size())
    throw Error(
        Error::kInternal,
        {rule, where, fmt::format("{} owners", checkpoint.owners.size()),
         fmt::format("{}, one for each live block", checkpoint.live.size()), "take it again"});
  for (const auto& [address, owner] : checkpoint.owners) {
    if (checkpoint.live.contains(address) && owns(owner, address)) continue;
    throw Error(Error::kInternal,
                {rule, where, fmt::format("an owner of block {} that does not own it", address),
                 "the allocator's deleter, and the block's start as address and context",
                 "nothing may free or move tensors of the pool between checkpoints"});
  }
}

// Owners that `current` lacks are detached by now, and wait for their blocks.
void check_target(const Checkpoint& current, const Checkpoint& target, const std::string& where) {
  for (const auto& [address, owner] : target.owners) {
    const bool known = owner && owner.data() == address && target.live.contains(address);
    const auto now = current.owners.find(address);
    const bool owned = now != current.owners.end() &&
                       now->second.unsafeGetStorageImpl() == owner.unsafeGetStorageImpl();
    if (known && (owned || !owner.data_ptr().get_context())) continue;
    throw Error(Error::kInternal,
                {"S1", where, fmt::format("a storage that cannot take block {} back", address),
                 "one at the block's start that owns it now, or owns nothing", "take it again"});
  }
  if (target.owners.size() != target.live.size())
    throw Error(Error::kInternal,
                {"S1", where, fmt::format("{} owners", target.owners.size()),
                 fmt::format("{}, one for each live block", target.live.size()), "take it again"});
}

// Takes ownership away without freeing. Cannot fail.
void strip(c10::Storage& storage) noexcept {
  c10::DataPtr& pointer = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
  (void)pointer.compare_exchange_deleter(caching::get()->raw_deleter(),
                                         &c10::detail::deleteNothing);
  (void)pointer.release_context();
}

class Switch {
 public:
  Switch(const PrivatePool& pool, const Checkpoint& current, const Checkpoint& target,
         const std::string& label)
      : pool_(pool),
        device_(c10::cuda::current_device()),
        current_(current),
        target_(target),
        label_(label),
        before_(caching::get()->getCheckpointState(device_, pool.id())),
        live_before_(topology_of(pool).live()) {
    check_owners(current, "S1", label + ", current checkpoint");
    check_target(current, target, label + ", target checkpoint");
  }

  void run() {
    const trace::PhaseScope phase(Phase::switch_pool);
    try {
      release_current();
      settle(pool_);
      const Live left = topology_of(pool_).live();
      if (!left.empty()) {
        throw Error(Error::kInternal,
                    {"S4", label_, "live after every owner was released: " + sizes_of(left), "none",
                     "allocate from the pool in captures only"});
      }
      trace::reached(Step::before_setter);
      state_set_ = true;
      auto delta = caching::get()->setCheckpointPoolState(device_, target_.state);
      trace::reached(Step::after_setter);
      adopt(std::move(delta), target_, "S5", Step::adoption);
      check(target_, target_.live, "S6", "S7");
      trace::reached(Step::switch_checked);
    } catch (const std::exception& error) {
      roll_back(error.what());
      throw;
    } catch (...) {
      roll_back("an exception of unknown type");
      throw;
    }
  }

 private:
  // S2. Each storage gives its block up before the block is freed, so that it is never owned twice.
  void release_current() {
    for (const auto& [address, owner] : current_.owners) {
      trace::reached(Step::owner_detach);
      c10::Storage storage = owner;
      strip(storage);
      caching::get()->raw_delete(const_cast<void*>(address));
      if (storage.data() != address || has_allocators_deleter(storage))
        throw Error(Error::kInternal,
                    {"S2", label_, fmt::format("block {} still owned", address), "none", ""});
    }
  }

  // S5. Every block that comes back finds its owner, by exact address.
  void adopt(caching::CheckpointDelta delta, const Checkpoint& checkpoint, const char* rule,
             Step step) const {
    std::set<const void*> adopted;
    for (at::DataPtr& block : delta.dataptrs_allocd) {
      trace::reached(step);
      const void* const address = block.get();
      const auto it = checkpoint.owners.find(address);
      if (it == checkpoint.owners.end() || it->second.data_ptr().get_context()) {
        throw Error(Error::kInternal,
                    {rule, label_, fmt::format("block {} that no owner waits for", address),
                     "the blocks of the checkpoint", ""});
      }
      c10::Storage owner = it->second;
      owner.set_data_ptr_noswap(std::move(block));
      adopted.insert(address);
    }
    if (adopted.size() != checkpoint.owners.size())
      throw Error(Error::kInternal,
                  {rule, label_, fmt::format("{} blocks came back", adopted.size()),
                   fmt::to_string(checkpoint.owners.size()), ""});
  }

  void check(const Checkpoint& checkpoint, const Live& live, const char* owners_rule,
             const char* live_rule) const {
    check_owners(checkpoint, owners_rule, label_);
    const Live now = topology_of(pool_).live();
    if (now == live) return;
    throw Error(Error::kInternal, {live_rule, label_,
                                   "added " + sizes_of(without(now, live)) + "; missing " +
                                       sizes_of(without(live, now)),
                                   "exactly the blocks of the checkpoint", ""});
  }

  // A block that another stream used waits for an event after its free, and the allocator would
  // build over it: all are freed and retired first. Not once a state has been set, which may have
  // left blocks that the allocator cannot find by address.
  caching::CheckpointDelta restore() const {
    if (!state_set_) {
      for (const auto& [address, bytes] : topology_of(pool_).live())
        caching::get()->raw_delete(const_cast<void*>(address));
    }
    settle(pool_);
    return caching::get()->setCheckpointPoolState(device_, before_);
  }

  // Blocks that `current` never knew are back at their addresses, and their owners never lost them.
  void leave_strays(caching::CheckpointDelta& delta) const {
    const Live strays = without(live_before_, current_.live);
    std::erase_if(delta.dataptrs_allocd, [&](at::DataPtr& block) {
      if (!strays.contains(block.get())) return false;
      (void)block.release_context();
      return true;
    });
  }

  // Whatever the failure left: nobody owns anything, the allocator frees what is there and rebuilds
  // what was, and the owners take it back.
  //
  // Why in this order. Before the allocator builds a state it frees every block of the pool. A
  // storage that still owned one would free it once more, or free what lies there by then. So
  // ownership goes first, from the storages of both checkpoints, because the failure may have come
  // after some of `target` had got their blocks. This cannot fail, so no storage is left half way.
  // Owners come back last, when their blocks lie at their addresses again, and only then is there
  // something to check. A failure in here ends the process: nobody knows any more which block is
  // whose.
  void roll_back(const std::string& cause) {
    const trace::PhaseScope phase(Phase::rollback);
    try {
      trace::reached(Step::rollback_detach);
      for (const Owners* const owners : {&current_.owners, &target_.owners}) {
        for (const auto& [address, owner] : *owners) {
          c10::Storage storage = owner;
          strip(storage);
        }
      }
      trace::reached(Step::rollback_restore);
      caching::CheckpointDelta delta = restore();
      leave_strays(delta);
      adopt(std::move(delta), current_, "R5", Step::rollback_adoption);
      check(current_, live_before_, "R6", "R7");
    } catch (const std::exception& error) {
      give_up(cause, error.what());
    } catch (...) {
      give_up(cause, "an exception of unknown type");
    }
  }

  [[noreturn]] void give_up(const std::string& cause, const std::string& error) const {
    fatal(fmt::format("{}: {}; the rollback failed too: {}; lost: {}", label_, cause, error,
                      sizes_of(current_.live)));
  }

  const PrivatePool& pool_;
  c10::DeviceIndex device_;
  const Checkpoint& current_;
  const Checkpoint& target_;
  const std::string& label_;
  std::shared_ptr<caching::AllocatorState> before_;  // S0
  Live live_before_;
  bool state_set_ = false;
};

}  // namespace

Owners resolve_owners(const Live& live, const std::vector<c10::Storage>& roots) {
  Owners owners;
  const std::string where = "owners of captured memory";
  for (const c10::Storage& root : roots) {
    if (!root || !root.data() || !root.device().is_cuda() || !has_allocators_deleter(root))
      continue;
    const void* const address = root.data();
    auto block = live.upper_bound(address);
    if (block == live.begin()) continue;
    --block;
    const auto* const begin = static_cast<const std::byte*>(block->first);
    if (static_cast<const std::byte*>(address) >= begin + block->second) continue;
    if (address != begin || root.data_ptr().get_context() != address) {
      throw Error(
          Error::kContract,
          {"K09", where, fmt::format("a storage at {} inside block {}", address, block->first),
           "an owner at the block's start", "keep whole storages"});
    }
    const auto [it, first] = owners.emplace(address, root);
    if (first || it->second.unsafeGetStorageImpl() == root.unsafeGetStorageImpl()) continue;
    throw Error(Error::kContract,
                {"K09", where, fmt::format("two storages that own block {}", address), "one",
                 "do not make storages over memory that another one frees"});
  }
  Live lost = live;
  for (const auto& [address, owner] : owners) lost.erase(address);
  if (!lost.empty()) {
    throw Error(
        Error::kContract,
        {"K09", where, "live blocks without owner, " + sizes_of(lost), "none",
         "a tensor was kept outside of autograd's saved tensors, or a cache was allocated in a "
         "capture: warm it up, name it in GraphModule::held, or use mode placement"});
  }
  return owners;
}

void settle(const PrivatePool& pool) {
  device::synchronise();
  if (topology_of(pool).pending().empty()) return;
  // The allocator looks at events when it is asked for memory; one byte of another pool disturbs
  // nothing.
  (void)at::empty({1}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
  const Live pending = topology_of(pool).pending();
  if (pending.empty()) return;
  throw Error(Error::kContract,
              {"K09", "pending frees", sizes_of(pending), "none once the device is idle",
               "do not use captured memory on streams outside the capture"});
}

Checkpoint take_checkpoint(const PrivatePool& pool, const std::vector<c10::Storage>& roots) {
  const trace::PhaseScope phase(Phase::boundary);
  Checkpoint checkpoint{nullptr, topology_of(pool).live(), {}};
  checkpoint.owners = resolve_owners(checkpoint.live, roots);
  trace::reached(Step::owners_resolved);
  checkpoint.state = caching::get()->getCheckpointState(c10::cuda::current_device(), pool.id());
  trace::reached(Step::checkpoint_taken);
  return checkpoint;
}

void switch_pool(const PrivatePool& pool, const Checkpoint& current, const Checkpoint& target,
                 const std::string& label) {
  const trace::PhaseScope phase(Phase::boundary);
  Switch transaction(pool, current, target, label);
  const device::BlockContentsKept kept;
  transaction.run();
}

}  // namespace slotgraph

#include "core/graph/replay/lease.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/eq.h>
#include <fmt/format.h>

#include "core/error.h"
#include "core/memory/borrowed.h"

namespace slotgraph {
namespace {

constexpr int kPoison = 0xFF;  // NaN in every floating type

at::Tensor bytes_of(const Region& region) {
  return borrowed_tensor(region.begin, {static_cast<std::int64_t>(region.bytes)}, {1}, at::kByte,
                         nullptr);
}

Region region_of(const c10::Storage& storage) {
  return {static_cast<std::byte*>(storage.mutable_data()), storage.nbytes()};
}

}  // namespace

std::pair<Tensors, Lease> LeaseBook::lend(const Tensors& tensors, std::string what) {
  std::map<const void*, c10::Storage> fresh;  // by the old storage; only looked up
  Lease lease{std::move(what), {}};
  Tensors result;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.storage().nbytes() == 0) {
      result.push_back(tensor);
      continue;
    }
    const c10::Storage& old = tensor.storage();
    auto it = fresh.find(old.unsafeGetStorageImpl());
    if (it == fresh.end()) {
      const auto owner = std::make_shared<c10::Storage>(old);
      c10::Storage storage = borrowed_storage(old.mutable_data(), old.nbytes(), owner);
      lease.storages.push_back(storage);
      it = fresh.emplace(old.unsafeGetStorageImpl(), std::move(storage)).first;
    }
    result.push_back(tensor_over(
        it->second, static_cast<std::size_t>(tensor.storage_offset()) * tensor.itemsize(),
        tensor.sizes(), tensor.strides(), tensor.scalar_type()));
  }
  return {std::move(result), std::move(lease)};
}

void LeaseBook::end(Lease lease, bool poison) {
  const at::NoGradGuard no_grad;
  for (c10::Storage& storage : lease.storages) {
    if (poison) bytes_of(region_of(storage)).fill_(kPoison);
    storage.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(
        fmt::format(
            "[P11] {}: found a use after its life, expected none; clone what must live longer",
            lease.what));
  }
}

void LeaseBook::end(Lent lent, bool poison, std::map<int, std::vector<Poisoned>>& poisoned) {
  if (poison) {
    for (const c10::Storage& storage : lent.lease.storages)
      poisoned[lent.colour].push_back({lent.lease.what, region_of(storage)});
  }
  end(std::move(lent.lease), poison);
}

void LeaseBook::lend_outputs(int branch, int colour, Lease lease) {
  Lent& lent = outputs_[branch];
  end(std::move(lent.lease), false);
  lent = {colour, std::move(lease)};
}

void LeaseBook::end_outputs(int branch) {
  const auto it = outputs_.find(branch);
  if (it == outputs_.end()) return;
  Lent lent = std::move(it->second);
  outputs_.erase(it);
  end(std::move(lent), true, poisoned_);
}

void LeaseBook::begin_backward(const Event& event) {
  if (event_ == event) return;
  if (previous_) end(std::move(*previous_), true, poisoned_gradient_);
  previous_ = std::move(newest_);
  newest_.reset();
  event_ = event;
}

void LeaseBook::lend_gradient(int colour, Lease lease) {
  if (newest_) end(std::move(*newest_), false, poisoned_gradient_);
  newest_ = Lent{colour, std::move(lease)};
}

void LeaseBook::end_step() {
  for (auto* const lent : {&previous_, &newest_}) {
    if (*lent) end(std::move(**lent), true, poisoned_gradient_);
    lent->reset();
  }
  event_.reset();
}

void LeaseBook::check(std::map<int, std::vector<Poisoned>>& poisoned, int colour) {
  const auto it = poisoned.find(colour);
  if (it == poisoned.end()) return;
  const std::vector<Poisoned> ended = std::move(it->second);
  poisoned.erase(it);
  for (const Poisoned& each : ended) {
    if (at::eq(bytes_of(each.region), kPoison).all().item<bool>()) continue;
    throw Error({"P11", each.what, "a write after its life", "none",
                 "clone what must live longer, and write to the clone"});
  }
}

void LeaseBook::enter(int colour) { check(poisoned_, colour); }
void LeaseBook::enter_gradient(int colour) { check(poisoned_gradient_, colour); }

}  // namespace slotgraph

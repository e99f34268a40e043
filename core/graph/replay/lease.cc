#include "core/graph/replay/lease.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/eq.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/memory/borrowed.h"

namespace slotgraph {
namespace {

constexpr int kPoison = 0xFF;  // NaN in every floating type

Region region_of(const c10::Storage& storage) {
  return {static_cast<std::byte*>(storage.mutable_data()), storage.nbytes()};
}

}  // namespace

std::pair<Tensors, Lease> LeaseBook::lend(const Tensors& tensors, std::string what) {
  Tensors lent = borrowed_alike(tensors, std::make_shared<Tensors>(tensors));
  Lease lease{std::move(what), {}, {}};
  for (const at::Tensor& tensor : lent) {
    if (tensor.defined())
      lease.versions.emplace_back(tensor.unsafeGetTensorImpl()->version_counter(),
                                  tensor._version());
    const bool known =
        std::any_of(lease.storages.begin(), lease.storages.end(), [&](const c10::Storage& storage) {
          return tensor.defined() && tensor.storage().is_alias_of(storage);
        });
    if (tensor.defined() && tensor.numel() > 0 && !known)
      lease.storages.push_back(tensor.storage());
  }
  return {std::move(lent), std::move(lease)};
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

void LeaseBook::end(Loan lent, bool poison, std::map<int, std::vector<DeadBytes>>& poisoned) {
  if (poison) {
    for (const c10::Storage& storage : lent.lease.storages)
      poisoned[lent.colour].push_back({lent.lease.what, region_of(storage)});
  }
  end(std::move(lent.lease), poison);
}

void LeaseBook::lend_outputs(int branch, int colour, Lease lease) {
  Loan& lent = outputs_[branch];
  end(std::move(lent.lease), false);
  lent = {colour, std::move(lease)};
}

void LeaseBook::check_outputs(int branch) const {
  const auto it = outputs_.find(branch);
  if (it == outputs_.end()) return;
  for (const auto& [counter, version] : it->second.lease.versions) {
    if (counter.current_version() == version) continue;
    throw Error(Error::kContract,
                {"P11", it->second.lease.what, "a write before the frame's backward",
                 "none: the frame may have saved it", "write to a clone"});
  }
}

void LeaseBook::end_outputs(int branch) {
  const auto it = outputs_.find(branch);
  if (it == outputs_.end()) return;
  Loan lent = std::move(it->second);
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
  newest_ = Loan{colour, std::move(lease)};
}

void LeaseBook::end_step() {
  for (auto* const lent : {&previous_, &newest_}) {
    if (*lent) end(std::move(**lent), true, poisoned_gradient_);
    lent->reset();
  }
  event_.reset();
}

void LeaseBook::check(std::map<int, std::vector<DeadBytes>>& poisoned, int colour) {
  const auto it = poisoned.find(colour);
  if (it == poisoned.end()) return;
  const std::vector<DeadBytes> ended = std::move(it->second);
  poisoned.erase(it);
  for (const DeadBytes& each : ended) {
    if (at::eq(bytes_of(each.region), kPoison).all().item<bool>()) continue;
    throw Error(Error::kContract, {"P11", each.what, "a write after its life", "none",
                                   "clone what must live longer, and write to the clone"});
  }
}

void LeaseBook::enter(int colour) { check(poisoned_, colour); }
void LeaseBook::enter_gradient(int colour) { check(poisoned_gradient_, colour); }

}  // namespace slotgraph

#include "fuzz/execute/device_observer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <fmt/format.h>

#include "core/digest.h"
#include "fuzz/execute/expectations.h"

namespace slotgraph::fuzz {
namespace {

// The same bytes as integers: floating comparison knows no bits.
at::Tensor as_integers(const at::Tensor& tensor) {
  switch (tensor.element_size()) {
    case 1:
      return tensor.view(at::kByte);
    case 2:
      return tensor.view(at::kShort);
    case 4:
      return tensor.view(at::kInt);
    default:
      return tensor.view(at::kLong);
  }
}

// Of 64-bit integers, which wrap: no order of adding matters. Every row and every column has its
// own weight.
at::Tensor weighted_sum(const at::Tensor& tensor) {
  at::Tensor sums = as_integers(tensor).to(at::kLong);
  if (sums.dim() > 1) {
    sums = sums.flatten(1);
    sums = at::mul(sums, at::arange(1, sums.size(1) + 1, sums.options())).sum(1);
  }
  sums = sums.view({-1});
  // With this factor row weights are no small multiples of those of columns.
  constexpr std::int64_t odd = 0x1E3779B97F4A7C15;
  const at::Tensor rows = at::mul(at::arange(1, sums.numel() + 1, sums.options()), odd);
  return at::mul(sums, at::mul(rows, rows)).sum().view({1});
}

class DeviceComparer final : public Comparer {
 public:
  DeviceComparer(const std::vector<Exhibit>& truth, const std::string& execution)
      : expectations_(truth, execution) {}

  void observe(const Coordinate& place, const std::string& what,
               const at::Tensor& tensor) override {
    std::string key = key_of(place, what);
    const at::Tensor* const expected = expectations_.next(key, tensor);
    if (!expected) return;
    count(tensor);
    if (tensor.numel() == 0) return;
    const at::Tensor differs =
        at::ne(as_integers(tensor.detach()), as_integers(*expected)).sum().view({1});
    keys_.push_back(std::move(key));
    counts_.push_back(differs);
  }

  void flush() override {
    if (counts_.empty()) return;
    const at::Tensor counts = at::cat(counts_).to(at::kCPU);
    const auto* const values = counts.const_data_ptr<std::int64_t>();
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (values[i] != 0)
        expectations_.report(keys_[i], fmt::format("{} elements differ", values[i]));
    }
    keys_.clear();
    counts_.clear();
  }

  std::vector<Finding> findings() override { return expectations_.findings(); }

 private:
  Expectations expectations_;
  std::vector<std::string> keys_;
  std::vector<at::Tensor> counts_;
};

class DeviceTruth final : public Truth {
 public:
  // A tensor that is shown again and was not written meanwhile is kept once.
  void observe(const Coordinate& place, const std::string& what,
               const at::Tensor& tensor) override {
    std::string key = key_of(place, what);
    if (!tensor.defined()) {
      shown_.push_back({std::move(key), tensor});
      return;
    }
    const void* const storage = tensor.storage().unsafeGetStorageImpl();
    for (const Seen& seen : seen_) {
      if (seen.tensor.storage().unsafeGetStorageImpl() == storage &&
          seen.version == tensor._version() && seen.tensor.sizes() == tensor.sizes() &&
          seen.tensor.strides() == tensor.strides() &&
          seen.tensor.storage_offset() == tensor.storage_offset()) {
        shown_.push_back({std::move(key), seen.copy});
        return;
      }
    }
    const at::Tensor copy = tensor.detach().clone(at::MemoryFormat::Contiguous);
    seen_.push_back({tensor.detach(), tensor._version(), copy});
    shown_.push_back({std::move(key), copy});
  }

  void flush() override { seen_.clear(); }

  std::unique_ptr<Comparer> make_comparer(const std::string& execution) const override {
    return std::make_unique<DeviceComparer>(shown_, execution);
  }

  std::string digest() const override {
    std::string all;
    std::vector<at::Tensor> sums;
    for (const Exhibit& shown : shown_) {
      all += shown.key + "\n";
      if (shown.tensor.defined()) sums.push_back(weighted_sum(shown.tensor));
    }
    if (!sums.empty()) {
      const at::Tensor values = at::cat(sums).to(at::kCPU);
      all.append(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
    }
    return sha256(all);
  }

 private:
  struct Seen {
    at::Tensor tensor;  // held, so that its memory is nobody else's
    std::int64_t version;
    at::Tensor copy;
  };
  std::vector<Seen> seen_;  // in this step
  std::vector<Exhibit> shown_;
};

}  // namespace

std::unique_ptr<Truth> make_device_truth() { return std::make_unique<DeviceTruth>(); }

}  // namespace slotgraph::fuzz

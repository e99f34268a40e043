#include "fuzz/execute/observer.h"

#include <ATen/ops/clone.h>
#include <fmt/format.h>

#include <cstring>

#include "core/device/device.h"
#include "core/digest.h"
#include "fuzz/execute/device_observer.h"
#include "fuzz/execute/expectations.h"

namespace slotgraph::fuzz {
namespace {

constexpr std::size_t kPendingLimit = std::size_t{48} << 20;  // bytes of snapshots on the device

// Snapshots on the device, which a flush brings to the host.
class Snapshots {
 public:
  // Returns whether it is time to take them.
  bool add(const Coordinate& place, const std::string& what, const at::Tensor& tensor) {
    pending_.push_back(
        {key_of(place, what),
         tensor.defined() ? tensor.detach().clone(at::MemoryFormat::Contiguous) : tensor});
    bytes_ += tensor.defined() ? tensor.nbytes() : 0;
    return bytes_ > kPendingLimit;
  }
  std::vector<Exhibit> take() {
    device::synchronise();
    for (Exhibit& shown : pending_) {
      if (shown.tensor.defined()) shown.tensor = shown.tensor.to(at::kCPU);
    }
    bytes_ = 0;
    return std::exchange(pending_, {});
  }

 private:
  std::vector<Exhibit> pending_;
  std::size_t bytes_ = 0;
};

std::string_view bytes_view(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// Empty if they are equal.
std::string difference(const at::Tensor& expected, const at::Tensor& found) {
  const std::string_view want = bytes_view(expected);
  const std::string_view have = bytes_view(found);
  if (want == have) return "";
  const auto number = [](char byte) { return static_cast<unsigned char>(byte); };
  std::size_t first = 0;
  std::size_t count = 0;
  for (std::size_t i = want.size(); i-- > 0;) {
    if (want[i] == have[i]) continue;
    first = i;
    ++count;
  }
  return fmt::format(
      "first differing byte {} of {} (element {}): found {:#04x}, expected {:#04x}; {} bytes "
      "differ; SHA-256 found {:.16}, expected {:.16}",
      first, want.size(), first / found.itemsize(), number(have[first]), number(want[first]), count,
      sha256(have), sha256(want));
}

class HostComparer final : public Comparer {
 public:
  HostComparer(const std::vector<Exhibit>& truth, const std::string& execution)
      : expectations_(truth, execution) {}

  void observe(const Coordinate& place, const std::string& what,
               const at::Tensor& tensor) override {
    if (snapshots_.add(place, what, tensor)) flush();
  }
  void flush() override {
    for (const Exhibit& shown : snapshots_.take()) compare(shown);
  }
  std::vector<Finding> findings() override { return expectations_.findings(); }

 private:
  void compare(const Exhibit& shown) {
    const at::Tensor* const expected = expectations_.next(shown.key, shown.tensor);
    if (!expected) return;
    count(shown.tensor);
    const std::string text = difference(*expected, shown.tensor);
    if (!text.empty()) expectations_.report(shown.key, text);
  }

  Expectations expectations_;
  Snapshots snapshots_;
};

class HostTruth final : public Truth {
 public:
  void observe(const Coordinate& place, const std::string& what,
               const at::Tensor& tensor) override {
    if (snapshots_.add(place, what, tensor)) flush();
  }
  void flush() override {
    for (Exhibit& shown : snapshots_.take()) shown_.push_back(std::move(shown));
  }
  std::unique_ptr<Comparer> make_comparer(const std::string& execution) const override {
    return std::make_unique<HostComparer>(shown_, execution);
  }
  std::string digest() const override {
    std::string all;
    for (const Exhibit& shown : shown_) {
      all += shown.key + "\n";
      if (shown.tensor.defined()) all += sha256(bytes_view(shown.tensor));
    }
    return sha256(all);
  }

 private:
  Snapshots snapshots_;
  std::vector<Exhibit> shown_;
};

}  // namespace

std::unique_ptr<Truth> make_truth(bool on_device) {
  if (on_device) return make_device_truth();
  return std::make_unique<HostTruth>();
}

}  // namespace slotgraph::fuzz

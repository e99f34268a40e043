#include "fuzz/execute/observer.h"

#include <ATen/ops/clone.h>
#include <fmt/format.h>

#include <cstring>

#include "core/device/device.h"
#include "core/digest.h"

namespace slotgraph::fuzz {
namespace {

constexpr std::size_t kPendingLimit = std::size_t{48} << 20;  // bytes of snapshots on the device
constexpr std::size_t kMostFindings = 4;  // of one execution: the rest are counted

}  // namespace

void Observer::observe(const Place& place, std::string what, const at::Tensor& tensor) {
  pending_.push_back(
      {place, std::move(what),
       tensor.defined() ? tensor.detach().clone(at::MemoryFormat::Contiguous) : tensor});
  pending_bytes_ += tensor.defined() ? tensor.nbytes() : 0;
  if (pending_bytes_ > kPendingLimit) flush();
}

void Observer::flush() {
  device::synchronise();
  for (Pending& pending : pending_) {
    const Place& place = pending.place;
    std::string key = fmt::format("step {}, microbatch {}, chunk {}, layer {}, {}", place.step,
                                  place.microbatch, place.chunk, place.layer, pending.what);
    take(std::move(key), pending.snapshot.defined() ? pending.snapshot.to(at::kCPU) : at::Tensor());
  }
  pending_.clear();
  pending_bytes_ = 0;
}

namespace {

std::string_view bytes_view(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace

void TruthComparer::report(std::string where, std::string what) {
  if (++differences_ <= kMostFindings)
    findings_.push_back({"equality", execution_, std::move(where), std::move(what)});
}

void TruthComparer::take(std::string key, at::Tensor bytes) {
  if (next_ >= truth_.entries().size() || truth_.entries()[next_].key != key) {
    report(key, "eager showed something else here");
    ++next_;
    return;
  }
  const at::Tensor& expected = truth_.entries()[next_++].bytes;
  if (expected.defined() != bytes.defined()) {
    report(key,
           bytes.defined() ? "a tensor where eager has none" : "no tensor where eager has one");
    return;
  }
  if (!bytes.defined()) return;
  ++tensors_;
  if (expected.sizes() != bytes.sizes() || expected.scalar_type() != bytes.scalar_type()) {
    report(key, "other sizes or dtype than eager");
    return;
  }
  bytes_ += bytes.nbytes();
  const auto* const want = static_cast<const unsigned char*>(expected.const_data_ptr());
  const auto* const found = static_cast<const unsigned char*>(bytes.const_data_ptr());
  if (bytes.nbytes() == 0 || std::memcmp(want, found, bytes.nbytes()) == 0) return;
  std::size_t first = 0;
  std::size_t count = 0;
  for (std::size_t i = bytes.nbytes(); i-- > 0;) {
    if (want[i] == found[i]) continue;
    first = i;
    ++count;
  }
  report(key,
         fmt::format("first differing byte {} of {} (element {}): found {:#04x}, expected "
                     "{:#04x}; {} bytes differ; SHA-256 found {:.16}, expected {:.16}",
                     first, bytes.nbytes(), first / bytes.itemsize(), found[first], want[first],
                     count, sha256(bytes_view(bytes)), sha256(bytes_view(expected))));
}

std::vector<Finding> TruthComparer::findings() {
  if (next_ < truth_.entries().size()) report(truth_.entries()[next_].key, "never shown");
  if (differences_ > kMostFindings) {
    findings_.push_back({"equality", execution_, "further tensors",
                         fmt::format("{} more differ", differences_ - kMostFindings)});
    differences_ = 0;
  }
  return findings_;
}

}  // namespace slotgraph::fuzz

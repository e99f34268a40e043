#include "fuzz/execute/expectations.h"

#include <fmt/format.h>

namespace slotgraph::fuzz {
namespace {

constexpr std::size_t kMostFindings = 4;  // of one execution: the rest are counted

}  // namespace

std::string key_of(const Coordinate& place, const std::string& what) {
  return fmt::format("step {}, microbatch {}, chunk {}, layer {}, {}", place.step, place.microbatch,
                     place.chunk, place.layer, what);
}

void Expectations::report(const std::string& where, const std::string& what) {
  if (++differences_ <= kMostFindings) findings_.push_back({"equality", execution_, where, what});
}

const at::Tensor* Expectations::next(const std::string& key, const at::Tensor& found) {
  if (next_ >= truth_.size() || truth_[next_].key != key) {
    report(key, "eager showed something else here");
    ++next_;
    return nullptr;
  }
  const at::Tensor& expected = truth_[next_++].tensor;
  if (expected.defined() != found.defined()) {
    report(key,
           found.defined() ? "a tensor where eager has none" : "no tensor where eager has one");
    return nullptr;
  }
  if (!found.defined()) return nullptr;
  if (expected.sizes() != found.sizes() || expected.scalar_type() != found.scalar_type()) {
    report(key, "other sizes or dtype than eager");
    return nullptr;
  }
  return &expected;
}

std::vector<Finding> Expectations::findings() {
  if (next_ < truth_.size()) report(truth_[next_].key, "never shown");
  if (differences_ > kMostFindings) {
    findings_.push_back({"equality", execution_, "further tensors",
                         fmt::format("{} more differ", differences_ - kMostFindings)});
    differences_ = 0;
  }
  return findings_;
}

}  // namespace slotgraph::fuzz

#include "fuzz/execute/shadow.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>

namespace slotgraph::fuzz {

Shadow::Shadow(CallableSet& set, const Plan& plan, int poison)
    : set_(set), plan_(plan), poison_(poison) {}

std::vector<std::pair<std::string, Region>> Shadow::owned(int except) const {
  std::vector<std::pair<std::string, Region>> result;
  for (const auto& [branch, regions] : flights_) {
    if (branch == except) continue;
    for (const Region& region : regions)
      result.emplace_back(fmt::format("branch {} in flight", branch), region);
  }
  for (const Region& region : newest_) result.emplace_back("the newest gradient", region);
  for (const Region& region : previous_) result.emplace_back("the gradient before", region);
  return result;
}

void Shadow::poison_dead(const std::vector<std::pair<std::string, Region>>& owned) const {
  std::vector<Region> live;
  for (const auto& [owner, region] : owned) live.push_back(region);
  std::sort(live.begin(), live.end(),
            [](const Region& a, const Region& b) { return a.begin < b.begin; });
  for (const Region& segment : set_.pool_memory()) {
    std::byte* at = segment.begin;
    std::byte* const end = segment.end();
    const auto fill = [&](std::byte* to) {
      if (to > at) bytes_of({at, static_cast<std::size_t>(to - at)}).fill_(poison_);
    };
    for (const Region& region : live) {
      if (region.end() <= at || region.begin >= end) continue;
      fill(region.begin);
      at = std::max(at, region.end());
    }
    fill(end);
  }
}

// The branch's own bytes are its to change; others are not.
void Shadow::keep_others(int except) {
  others_.clear();
  for (auto& [owner, region] : owned(except))
    others_.push_back({owner, region, bytes_of(region).clone()});
}

void Shadow::verify(const std::string& replay) {
  for (const OwnedBytes& kept : others_) {
    if (at::equal(bytes_of(kept.region), kept.bytes)) continue;
    faults_.push_back(fmt::format("{}: {} bytes at {} of {}", replay, kept.region.bytes,
                                  fmt::ptr(kept.region.begin), kept.owner));
  }
  others_.clear();
}

void Shadow::begin_event(const Event& event) {
  if (event_ == event) return;
  previous_ = std::move(newest_);
  newest_.clear();
  event_ = event;
}

void Shadow::before_forward(const Replay& replay) {
  const int branch = replay.branch;
  const at::NoGradGuard no_grad;
  poison_dead(owned(-1));
  keep_others(branch);
}

void Shadow::after_forward(const Replay& replay, const Tensors&) {
  const int branch = replay.branch;
  const at::NoGradGuard no_grad;
  verify(fmt::format("forward of branch {}", branch));
  flights_[branch] = set_.ownership(branch).flight;
}

void Shadow::before_backward(const Replay& replay) {
  const int branch = replay.branch;
  const at::NoGradGuard no_grad;
  const Slot& slot = plan_.slots[branch];
  begin_event({slot.model_chunk, slot.physical_slot});
  poison_dead(owned(-1));
  // The gradient of the layer before in this event is this one's incoming gradient, and gives way.
  std::vector<Region> incoming = std::move(newest_);
  newest_.clear();
  keep_others(branch);
  newest_ = std::move(incoming);
}

void Shadow::after_backward(const Replay& replay, const Tensors&) {
  const int branch = replay.branch;
  const at::NoGradGuard no_grad;
  verify(fmt::format("backward of branch {}", branch));
  flights_.erase(branch);
  const std::vector<Region> gradient = set_.ownership(branch).gradient;
  if (!gradient.empty()) newest_ = gradient;
}

void Shadow::end_step() {
  newest_.clear();
  previous_.clear();
  event_.reset();
}

std::vector<Finding> Shadow::findings(const std::string& execution) const {
  std::vector<Finding> findings;
  for (const std::string& fault : faults_)
    findings.push_back({"shadow", execution, fault, "bytes that another frame owns have changed"});
  return findings;
}

}  // namespace slotgraph::fuzz

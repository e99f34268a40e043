#include "fuzz/execute/address_book.h"

#include <fmt/format.h>

namespace slotgraph::fuzz {

void AddressBook::after_forward(const Replay& replay, const Tensors& outputs) {
  note(replay, "output 0", outputs[0]);
}

void AddressBook::after_backward(const Replay& replay, const Tensors& gradients) {
  if (gradients[0].defined()) note(replay, "gradient of input 0", gradients[0]);
}

void AddressBook::note(const Replay& replay, const char* what, const at::Tensor& tensor) {
  const void* const address = tensor.const_data_ptr();
  const auto [it, first] = first_.try_emplace({plan_.frame_of(replay.branch), what}, address);
  if (first || it->second == address) return;
  const Coordinate& place = replay.place;
  faults_.push_back(
      fmt::format("step {}, microbatch {}, chunk {}, layer {}, {}: found {}, expected {} as at "
                  "first",
                  place.step, place.microbatch, place.chunk, place.layer, what, fmt::ptr(address),
                  fmt::ptr(it->second)));
}

std::vector<Finding> AddressBook::findings(const std::string& execution) const {
  std::vector<Finding> findings;
  for (const std::string& fault : faults_)
    findings.push_back({"addresses", execution, fault, "equal slots have other addresses"});
  return findings;
}

}  // namespace slotgraph::fuzz

// What both kinds of comparison share: the order of what is shown, and the findings.
#ifndef FUZZ_EXECUTE_EXPECTATIONS_H_
#define FUZZ_EXECUTE_EXPECTATIONS_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/record/record.h"
#include "fuzz/execute/model.h"

namespace slotgraph::fuzz {

struct Exhibit {
  std::string key;
  at::Tensor tensor;  // contiguous; undefined if none was shown
};

// `step 0, microbatch 1, chunk 0, layer 2, output 0 when returned`
std::string key_of(const Coordinate& place, const std::string& what);

// What the truth showed, in order, and the differences from it.
class Expectations {
 public:
  Expectations(const std::vector<Exhibit>& truth, std::string execution)
      : truth_(truth), execution_(std::move(execution)) {}

  // The tensor that the truth showed here, if there is something to compare: else what differs is
  // reported.
  const at::Tensor* next(const std::string& key, const at::Tensor& found);
  void report(const std::string& where, const std::string& what);
  std::vector<Finding> findings();

 private:
  const std::vector<Exhibit>& truth_;
  std::string execution_;
  std::size_t next_ = 0;
  std::uint64_t differences_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_EXPECTATIONS_H_

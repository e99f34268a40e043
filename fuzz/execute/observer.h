// What an execution shows, and the comparison of two executions.
#ifndef FUZZ_EXECUTE_OBSERVER_H_
#define FUZZ_EXECUTE_OBSERVER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/record/record.h"
#include "fuzz/execute/model.h"

namespace slotgraph::fuzz {

// Takes tensors in stream order: what it does with one is queued at once and read later, so
// observing orders nothing.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void observe(const Coordinate& place, const std::string& what,
                       const at::Tensor& tensor) = 0;
  // Reads what is queued; call at the end of each step.
  virtual void flush() = 0;
};

// Compares with the truth, in order, byte for byte: NaN equals NaN of the same bits, -0.0 differs
// from 0.0.
class Comparer : public Observer {
 public:
  // After the last flush: also a finding if something was never shown.
  virtual std::vector<Finding> findings() = 0;
  std::uint64_t tensors() const { return tensors_; }
  std::uint64_t bytes() const { return bytes_; }

 protected:
  void count(const at::Tensor& compared) {
    ++tensors_;
    bytes_ += compared.nbytes();
  }

 private:
  std::uint64_t tensors_ = 0;
  std::uint64_t bytes_ = 0;
};

// Keeps everything.
class Truth : public Observer {
 public:
  // `execution` is what findings name. The truth must outlive it.
  virtual std::unique_ptr<Comparer> make_comparer(const std::string& execution) const = 0;
  // Of everything, in order: SHA-256, in hexadecimal, of the bytes, or of sums of them where they
  // stay on the device.
  virtual std::string digest() const = 0;
};

// Tensors are kept and compared on the host, or where they are.
std::unique_ptr<Truth> make_truth(bool on_device);

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_OBSERVER_H_

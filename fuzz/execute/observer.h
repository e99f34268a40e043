// What an execution shows, and the comparison of two executions.
#ifndef FUZZ_EXECUTE_OBSERVER_H_
#define FUZZ_EXECUTE_OBSERVER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/record/record.h"
#include "fuzz/execute/model.h"

namespace slotgraph::fuzz {

// Takes tensors in stream order: a snapshot is queued at once and read later, so observing orders
// nothing.
class Observer {
 public:
  virtual ~Observer() = default;
  void observe(const Place& place, std::string what, const at::Tensor& tensor);
  // Reads what is queued; call at the end of each step.
  void flush();

 protected:
  virtual void take(std::string key, at::Tensor bytes) = 0;

 private:
  struct Pending {
    Place place;
    std::string what;
    at::Tensor snapshot;
  };
  std::vector<Pending> pending_;
  std::size_t pending_bytes_ = 0;
};

// Keeps everything: the truth.
class TruthRecorder final : public Observer {
 public:
  struct Entry {
    std::string key;
    at::Tensor bytes;  // CPU
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  void take(std::string key, at::Tensor bytes) override {
    entries_.push_back({std::move(key), std::move(bytes)});
  }
  std::vector<Entry> entries_;
};

// Compares with the truth, in order, byte for byte: NaN equals NaN of the same bits, -0.0 differs
// from 0.0.
class TruthComparer final : public Observer {
 public:
  TruthComparer(const TruthRecorder& truth, std::string execution)
      : truth_(truth), execution_(std::move(execution)) {}

  // After the last flush: also a finding if something was never shown.
  std::vector<Finding> findings();
  std::uint64_t tensors() const { return tensors_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void take(std::string key, at::Tensor bytes) override;
  void report(std::string where, std::string what);

  const TruthRecorder& truth_;
  std::string execution_;
  std::size_t next_ = 0;
  std::uint64_t tensors_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t differences_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace slotgraph::fuzz

#endif  // FUZZ_EXECUTE_OBSERVER_H_

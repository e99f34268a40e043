// The host device's generator: Philox with a (seed, offset) state. Values are not cuRAND's.
#ifndef CORE_DEVICE_HOST_GENERATOR_H_
#define CORE_DEVICE_HOST_GENERATOR_H_

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace slotgraph::device::host {

// Where a captured random operator reads the generator's state when it runs. A replay fills it in
// stream order.
struct PhiloxCell {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
};

// State of one draw: values for an eager operator, the graph's cell plus an offset for a captured
// one.
struct PhiloxDraw {
  std::shared_ptr<const PhiloxCell> cell;  // null: eager
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  PhiloxCell resolve() const {
    return cell ? PhiloxCell{cell->seed, cell->offset + offset} : PhiloxCell{seed, offset};
  }
};

class HostGenerator final : public c10::GeneratorImpl {
 public:
  explicit HostGenerator(c10::DeviceIndex device);

  void set_current_seed(std::uint64_t seed) override;
  void set_offset(std::uint64_t offset) override;
  std::uint64_t get_offset() const override { return offset_; }
  std::uint64_t current_seed() const override { return seed_; }
  std::uint64_t seed() override;  // refused: a seed from the environment could not be reproduced
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // Reserves numbers for `count` values on the current stream: the offset advances by
  // 4 * ceil(count / 4). Hold mutex_. Throws c10::Error, with PyTorch's texts, if the stream
  // captures and this generator is not registered with the capture, or the other way round.
  PhiloxDraw draw(std::int64_t count);

  // Between the two, draws refer to the cell. The epilogue returns the offset that one replay
  // consumes.
  void begin_capture(std::shared_ptr<const PhiloxCell> cell);
  std::uint64_t end_capture();
  // The state for one replay; advances the offset.
  PhiloxCell take_for_replay(std::uint64_t consumed);

 private:
  HostGenerator* clone_impl() const override;

  std::uint64_t seed_ = c10::default_rng_seed_val;
  std::uint64_t offset_ = 0;
  std::shared_ptr<const PhiloxCell> cell_;  // while capturing
  std::uint64_t captured_ = 0;
};

// Default generator of a device (-1: the current one).
const at::Generator& default_generator(c10::DeviceIndex device);
HostGenerator& as_host(const at::Generator& generator);

}  // namespace slotgraph::device::host

#endif  // CORE_DEVICE_HOST_GENERATOR_H_

#include "core/device/host/generator.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <cstring>
#include <map>
#include <mutex>

namespace slotgraph::device::host {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);

void check_not_capturing(bool capturing, const char* call) {
  TORCH_CHECK(!capturing, "the generator's ", call,
              " cannot be called while a graph is being captured");
}

}  // namespace

HostGenerator::HostGenerator(c10::DeviceIndex device)
    : c10::GeneratorImpl(at::Device(at::kCUDA, device), kKeys) {}

void HostGenerator::set_current_seed(std::uint64_t seed) {
  check_not_capturing(cell_ != nullptr, "set_current_seed");
  seed_ = seed;
  offset_ = 0;
}

void HostGenerator::set_offset(std::uint64_t offset) {
  check_not_capturing(cell_ != nullptr, "set_offset");
  TORCH_CHECK(offset % 4 == 0, "offset must be a multiple of 4, found ", offset);
  offset_ = offset;
}

std::uint64_t HostGenerator::seed() {
  TORCH_CHECK(false, "the host device takes seeds from the caller only: use manual_seed");
}

void HostGenerator::set_state(const c10::TensorImpl& state) {
  check_not_capturing(cell_ != nullptr, "set_state");
  TORCH_CHECK(state.numel() == 16 && state.dtype() == caffe2::TypeMeta::Make<std::uint8_t>() &&
                  state.is_cpu(),
              "generator state must be 16 CPU bytes: seed and offset");
  std::memcpy(&seed_, state.data(), 8);
  std::memcpy(&offset_, static_cast<const char*>(state.data()) + 8, 8);
}

c10::intrusive_ptr<c10::TensorImpl> HostGenerator::get_state() const {
  const at::Tensor state = at::empty({16}, at::TensorOptions(at::kCPU).dtype(at::kByte));
  auto* const bytes = state.data_ptr<std::uint8_t>();
  std::memcpy(bytes, &seed_, 8);
  std::memcpy(bytes + 8, &offset_, 8);
  return state.getIntrusivePtr();
}

PhiloxDraw HostGenerator::draw(std::int64_t count) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  C10_CUDA_CHECK(cudaStreamIsCapturing(c10::cuda::getCurrentCUDAStream(), &status));
  const bool captured = status != cudaStreamCaptureStatusNone;
  TORCH_CHECK(cell_ || !captured,
              "Attempt to increase offset for a CUDA generator not in capture mode.");
  TORCH_CHECK(!cell_ || captured,
              "Offset increment outside graph capture encountered unexpectedly.");
  const std::uint64_t reserved = 4 * ((static_cast<std::uint64_t>(count) + 3) / 4);
  std::uint64_t& counter = cell_ ? captured_ : offset_;
  const PhiloxDraw result{cell_, seed_, counter};
  counter += reserved;
  return result;
}

void HostGenerator::begin_capture(std::shared_ptr<const PhiloxCell> cell) {
  TORCH_CHECK(!cell_, "the generator already belongs to a capture");
  cell_ = std::move(cell);
  captured_ = 0;
}

std::uint64_t HostGenerator::end_capture() {
  cell_.reset();
  return captured_;
}

PhiloxCell HostGenerator::take_for_replay(std::uint64_t consumed) {
  check_not_capturing(cell_ != nullptr, "replay");
  const PhiloxCell state{seed_, offset_};
  offset_ += consumed;
  return state;
}

HostGenerator* HostGenerator::clone_impl() const {
  auto* const copy = new HostGenerator(device().index());
  copy->seed_ = seed_;
  copy->offset_ = offset_;
  return copy;
}

const at::Generator& default_generator(c10::DeviceIndex device) {
  static std::mutex& mutex = *new std::mutex();
  static auto& generators = *new std::map<c10::DeviceIndex, at::Generator>();
  const c10::DeviceIndex index = device < 0 ? c10::cuda::current_device() : device;
  const std::lock_guard lock(mutex);
  auto& generator = generators[index];
  if (!generator.defined()) generator = at::make_generator<HostGenerator>(index);
  return generator;
}

HostGenerator& as_host(const at::Generator& generator) {
  auto* const host = dynamic_cast<HostGenerator*>(generator.unsafeGetGeneratorImpl());
  TORCH_CHECK(host, "expected a generator of the host device, found one of ", generator.device());
  return *host;
}

}  // namespace slotgraph::device::host

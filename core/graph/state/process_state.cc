#include "core/graph/state/process_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "core/device/device.h"
#include "core/error.h"
#include "core/graph/state/restoration.h"

namespace slotgraph {
namespace {

std::atomic<bool> turn_taken{false};
thread_local bool capturing_here = false;

std::vector<const void*> addresses_of(const Tensors& parameters, const Tensors& buffers) {
  std::vector<const void*> result;
  for (const Tensors* const tensors : {&parameters, &buffers}) {
    for (const at::Tensor& tensor : *tensors)
      result.push_back(tensor.defined() ? tensor.const_data_ptr() : nullptr);
  }
  return result;
}

bool same_objects(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return x.is_same(y); });
}

// Captures need a stream of their own; one for each device, so that blocks and workspaces of
// earlier calls serve later ones.
c10::cuda::CUDAStream capture_stream() {
  static std::map<c10::DeviceIndex, c10::cuda::CUDAStream>& streams =
      *new std::map<c10::DeviceIndex, c10::cuda::CUDAStream>();
  const c10::DeviceIndex device = c10::cuda::current_device();
  const auto it = streams.find(device);
  if (it != streams.end()) return it->second;
  return streams.emplace(device, c10::cuda::getStreamFromPool()).first->second;
}

void restore(auto& leaves) {
  for (auto& leaf : leaves) {
    if (leaf.tensor.requires_grad() != leaf.requires_grad)
      leaf.tensor.requires_grad_(leaf.requires_grad);
    if (leaf.tensor.is_leaf() && !leaf.tensor.grad().is_same(leaf.grad))
      leaf.tensor.mutable_grad() = leaf.grad;
    if (!leaf.accumulator.expired())
      torch::autograd::impl::set_grad_accumulator(leaf.tensor, leaf.accumulator);
  }
}

}  // namespace

bool capturing() { return capturing_here; }

CaptureTurn::CaptureTurn() {
  if (turn_taken.exchange(true)) {
    throw Error(Error::kContract, {"G01", "graph_callables", "another call that is not finished",
                                   "one call at a time in a process",
                                   "do not capture from a module, and take turns between threads"});
  }
  capturing_here = true;
}

CaptureTurn::~CaptureTurn() {
  capturing_here = false;
  turn_taken.store(false);
}

ModuleStateGuard::ModuleStateGuard(const std::vector<GraphModule>& modules,
                                   const std::vector<Inputs>& samples) {
  const at::NoGradGuard no_grad;
  const auto leaf = [](const at::Tensor& tensor) {
    return Leaf{tensor, static_cast<std::uint32_t>(tensor._version()), tensor.requires_grad(),
                tensor.is_leaf() ? tensor.grad() : at::Tensor()};
  };
  std::set<const torch::nn::Module*> seen;
  for (const GraphModule& module : modules) {
    if (!seen.insert(module.module.get()).second) continue;
    Saved saved{module, parameters_of(module), buffers_of(module), {}, {}};
    saved.addresses = addresses_of(saved.parameters, saved.buffers);
    for (const at::Tensor& buffer : saved.buffers)
      saved.contents.push_back(buffer.defined() ? buffer.clone() : buffer);
    for (const at::Tensor& parameter : saved.parameters) parameters_.push_back(leaf(parameter));
    modules_.push_back(std::move(saved));
  }
  for (const Inputs& sample : samples) {
    for (const at::Tensor& input : sample.all()) inputs_.push_back(leaf(input));
  }
  take_accumulators(parameters_);
}

void ModuleStateGuard::take_accumulators(std::vector<Leaf>& leaves) {
  for (Leaf& leaf : leaves) {
    if (!leaf.tensor.is_leaf()) continue;
    leaf.accumulator = torch::autograd::impl::try_get_grad_accumulator(leaf.tensor);
    if (!leaf.accumulator.expired()) torch::autograd::impl::set_grad_accumulator(leaf.tensor, {});
  }
}

ModuleStateGuard::~ModuleStateGuard() {
  const at::NoGradGuard no_grad;
  restore_or_end("the state of modules", [&] {
    for (Saved& saved : modules_) {
      for (std::size_t i = 0; i < saved.buffers.size(); ++i) {
        if (saved.buffers[i].defined()) saved.buffers[i].copy_(saved.contents[i]);
      }
    }
    restore(parameters_);
    restore(inputs_);
  });
}

void ModuleStateGuard::check_replaced(const Saved& saved) const {
  const std::string where = "module " + name_of(saved.module);
  const Tensors parameters = parameters_of(saved.module), buffers = buffers_of(saved.module);
  if (same_objects(parameters, saved.parameters) && same_objects(buffers, saved.buffers) &&
      addresses_of(parameters, buffers) == saved.addresses)
    return;
  throw Error(Error::kContract,
              {"PS02", where, "another tensor in place of a parameter or buffer",
               "the tensors it had before", "update buffers in place (copy_, mul_, add_)"});
}

void ModuleStateGuard::check() const {
  for (const Saved& saved : modules_) check_replaced(saved);
  for (const auto* const leaves : {&parameters_, &inputs_}) {
    const char* const what = leaves == &parameters_ ? "parameter" : "sample input";
    for (std::size_t i = 0; i < leaves->size(); ++i) {
      const Leaf& leaf = (*leaves)[i];
      if (leaf.tensor._version() == leaf.version) continue;
      throw Error(Error::kContract, {"PS01", fmt::format("{} {}", what, i), "a write in place",
                                     "parameters and inputs that forward only reads",
                                     "make it a buffer, or write to a clone"});
    }
  }
}

GeneratorGuard::GeneratorGuard(std::vector<at::Generator> generators) {
  generators.push_back(device::generator());
  for (at::Generator& generator : generators) {
    const std::lock_guard lock(generator.mutex());
    states_.emplace_back(generator, generator.get_state());
  }
}

GeneratorGuard::~GeneratorGuard() {
  restore_or_end("a generator", [&] {
    for (auto& [generator, state] : states_) {
      const std::lock_guard lock(generator.mutex());
      generator.set_state(state);
    }
  });
}

CurrentStreamGuard::CurrentStreamGuard(c10::cuda::CUDAStream stream)
    : before_(c10::cuda::getCurrentCUDAStream(stream.device_index())) {
  c10::cuda::setCurrentCUDAStream(stream);
}

CurrentStreamGuard::~CurrentStreamGuard() {
  restore_or_end("the current device", [&] { c10::cuda::set_device(before_.device_index()); });
  c10::cuda::setCurrentCUDAStream(before_);
}

ProcessStateGuard::Idle::Idle() { device::synchronise(); }

// The allocator retires frees that captures put off when it is asked for memory: here, not among
// replays. It has done so, too, when it finds none.
ProcessStateGuard::Idle::~Idle() {
  restore_or_end("the idle device", [] {
    try {
      (void)at::empty({1}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
    } catch (const c10::OutOfMemoryError&) {
    }
    device::synchronise();
  });
}

ProcessStateGuard::ProcessStateGuard(const std::vector<GraphModule>& modules,
                                     const std::vector<Inputs>& samples,
                                     const std::vector<at::Generator>& generators)
    : stream_(capture_stream()), modules_(modules, samples), generators_(generators) {}

}  // namespace slotgraph

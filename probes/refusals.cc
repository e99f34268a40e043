// Tensors that are refused, each with its rule, and process state as it was before.
#include <ATen/Functions.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>

#include "core/device/device.h"
#include "probes/alias_rig.h"

namespace slotgraph::probes {
namespace {

// Made by hand: libtorch's factories for these kinds are kernels, which a device may lack.
at::Tensor sparse_tensor() {
  return at::detail::make_tensor<at::SparseTensorImpl>(
      c10::DispatchKeySet(c10::DispatchKey::SparseCUDA), caffe2::TypeMeta::Make<float>());
}

at::Tensor quantised_tensor() {
  const at::Tensor memory = at::zeros({16}, at::TensorOptions(at::kCUDA).dtype(at::kChar));
  return at::detail::make_tensor<at::QTensorImpl>(
      c10::Storage(memory.storage()), c10::DispatchKeySet(c10::DispatchKey::QuantizedCUDA),
      caffe2::TypeMeta::Make<c10::qint8>(),
      at::make_per_tensor_affine_quantizer(1.0, 0, at::kQInt8));
}

struct Refusal {
  std::string what;
  std::string rule;
  // Puts the tensor into the rig: into a sample, or into the outputs.
  std::function<void(AliasRig&)> spoil;
};

std::function<void(AliasRig&)> as_input(std::function<at::Tensor(AliasRig&)> make) {
  return [=](AliasRig& rig) { rig.samples[1].positional[0] = make(rig); };
}

std::function<void(AliasRig&)> as_output(std::function<at::Tensor(AliasRig&, Tensors&)> make) {
  return [=](AliasRig& rig) {
    rig.before_return = [&rig, make](Tensors& outputs) { outputs[kExact] = make(rig, outputs); };
  };
}

std::vector<Refusal> refusals() {
  return {
      {"an undefined input", "C19", as_input([](AliasRig&) { return at::Tensor(); })},
      {"an input on the CPU", "C19", as_input([](AliasRig&) {
         return at::ones({AliasRig::kRows, kHidden});
       })},
      {"a sparse input", "C19", as_input([](AliasRig&) { return sparse_tensor(); })},
      {"a quantised input", "C19", as_input([](AliasRig&) { return quantised_tensor(); })},
      {"an expanded input", "C19", as_input([](AliasRig&) {
         return values(1, 3).expand({AliasRig::kRows, kHidden});
       })},
      {"an input in the memory of a parameter", "C21",
       as_input([](AliasRig& rig) { return rig.weight.detach().narrow(0, 0, AliasRig::kRows); })},
      {"an input in the memory of a buffer", "C21", as_input([](AliasRig& rig) {
         return rig.buffer.view({1, kHidden});
       })},
      {"a sparse output", "W06", as_output([](AliasRig&, Tensors&) { return sparse_tensor(); })},
      {"a quantised output", "W06",
       as_output([](AliasRig&, Tensors&) { return quantised_tensor(); })},
      {"an expanded output", "W06", as_output([](AliasRig&, Tensors& out) {
         return out[kY].narrow(0, 0, 1).expand({AliasRig::kRows, kHidden});
       })},
      {"a parameter itself as output", "W06",
       as_output([](AliasRig& rig, Tensors&) { return rig.weight; })},
      {"a differentiable output on the CPU", "W06",
       as_output([](AliasRig&, Tensors&) { return at::ones({2}).requires_grad_(true); })},
  };
}

// What a capture may not change, whether it succeeds or not.
struct ProcessState {
  explicit ProcessState(const AliasRig& rig)
      : generator(bytes_of(device::generator().get_state())),
        weight(bytes_of(rig.weight)),
        buffer(bytes_of(rig.buffer)),
        sample(bytes_of(rig.samples[0].positional[0])),
        allocated(allocated_bytes()),
        stream(c10::cuda::getCurrentCUDAStream()),
        grad_mode(at::GradMode::is_enabled()) {}

  std::string changes(const ProcessState& later) const {
    std::string text;
    const auto note = [&](bool same, const char* what) {
      if (!same) text += (text.empty() ? "changed: " : ", ") + std::string(what);
    };
    note(generator == later.generator, "generator");
    note(weight == later.weight, "parameter");
    note(buffer == later.buffer, "buffer");
    note(sample == later.sample, "sample");
    note(allocated == later.allocated, "allocated bytes");
    note(stream == later.stream, "current stream");
    note(grad_mode == later.grad_mode, "grad mode");
    return text.empty() ? "untouched" : text;
  }

  std::string generator, weight, buffer, sample;
  std::size_t allocated;
  c10::cuda::CUDAStream stream;
  bool grad_mode;
};

// A module whose runs leave traces, so that there is something to undo.
void leave_traces(AliasRig& rig) {
  rig.before_return = [&rig, spoil = rig.before_return](Tensors& outputs) {
    const at::NoGradGuard none;
    rig.buffer.add_(1);
    at::empty({4}, at::kCUDA).uniform_();
    const at::AutoGradMode on(true);
    spoil(outputs);
  };
}

}  // namespace

void probe_refusals(Mode mode, Rows& rows) {
  for (const Refusal& refusal : refusals()) {
    AliasRig rig;
    try {
      refusal.spoil(rig);
    } catch (const std::exception& error) {
      rows.unknown(refusal.what, "cannot be made here", refusal.rule);
      continue;
    }
    leave_traces(rig);
    rows.attempt(refusal.what, [&] {
      const ProcessState before(rig);
      const std::string found = rule_of([&] { rig.capture(mode); });
      rows.expect(refusal.what, found, refusal.rule);
      rows.expect(refusal.what + ": process state", before.changes(ProcessState(rig)), "untouched");
    });
  }
  // Whatever a refusal leaves behind would break the next capture.
  rows.attempt("a capture after all refusals", [&] {
    AliasRig rig;
    leave_traces(rig);
    const ProcessState before(rig);
    rig.capture(mode).reset();
    rows.expect("a capture after all refusals, and process state",
                before.changes(ProcessState(rig)), "untouched");
  });
}

}  // namespace slotgraph::probes

#include "core/graph/capture/branch_capture.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include "core/error.h"
#include "core/graph/run/backward.h"
#include "core/graph/run/run_tensors.h"
#include "core/graph/run/saved_hooks.h"
#include "core/memory/borrowed.h"

namespace slotgraph {
namespace {

[[noreturn]] void refuse(const char* rule, const std::string& where, std::string found,
                         std::string expected = "the same as in warm-up") {
  throw Error(Error::kContract,
              {rule, where, std::move(found), std::move(expected),
               "a graph holds one run: nothing may depend on data or on earlier calls"});
}

bool same_view(const at::Tensor& a, const at::Tensor& b) {
  return a.const_data_ptr() == b.const_data_ptr() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && a.scalar_type() == b.scalar_type();
}

// Compares what the forward saves with the warm-up, and copies it to its places.
class SavedTensors {
 public:
  SavedTensors(const BranchSource& source, const Tensors& places, RunObserver& observer,
               OpenBranch& open)
      : source_(source), places_(places), observer_(observer), open_(open) {}

  at::Tensor pack(const at::Tensor& tensor) {
    const std::size_t index = next_++;
    const std::vector<SavedTensor>& expected = source_.profile.tensors.saved;
    const std::string where = fmt::format("{}, saved tensor {}", source_.where, index);
    if (index >= expected.size()) refuse("K01", where, "one more saved tensor");
    observer_.see_saved(tensor);
    check(observer_.tensors().saved.back(), expected[index], where);
    const at::Tensor& target = places_[index];
    if (!target.defined() || (tensor.numel() > 0 && same_view(tensor, target))) return tensor;
    const at::NoGradGuard no_grad;
    // The whole span as bytes: expanded and strided views keep what other views of it may read.
    const Region from = region_of(tensor);
    if (from.bytes > 0) bytes_of(region_of(target)).copy_(bytes_of(from));
    open_.copied_bytes += from.bytes;
    open_.originals.push_back(tensor.storage().getWeakStorageImpl());
    return target.detach().requires_grad_(tensor.requires_grad());
  }

  void finish() const {
    const std::size_t expected = source_.profile.tensors.saved.size();
    if (next_ < expected)
      refuse("K01", source_.where, fmt::format("{} saved tensors", next_),
             fmt::to_string(expected));
  }

 private:
  static void check(const SavedTensor& found, const SavedTensor& expected,
                    const std::string& where) {
    const TensorSpec &a = found.tensor, &b = expected.tensor;
    if (a.sizes != b.sizes || a.strides != b.strides || a.dtype != b.dtype ||
        a.device != b.device || a.requires_grad != b.requires_grad ||
        found.internal != expected.internal)
      refuse("K02", where, "a tensor of another signature");
    if (a.device < 0) return;  // on the CPU: baked in, whichever object it is
    if (!found.internal && a.storage != b.storage) refuse("K03", where, "another external storage");
    if (a.storage != b.storage || a.offset != b.offset || found.version != expected.version)
      refuse("K02", where, "a tensor that aliases others in another way");
  }

  const BranchSource& source_;
  const Tensors& places_;
  RunObserver& observer_;
  OpenBranch& open_;
  std::size_t next_ = 0;
};

void check_outputs(const BranchSource& source, const RunTensors& found) {
  const RunTensors& expected = source.profile.tensors;
  if (found.outputs != expected.outputs || found.output_versions != expected.output_versions)
    refuse("K04", source.where, "other outputs, or outputs that alias otherwise");
}

}  // namespace

OpenBranch capture_forward(const BranchSource& source, const Tensors& inputs,
                           const CaptureSite& site, CaptureMemory memory) {
  OpenBranch open;
  open.inputs = inputs;
  open.branch.module = source.module;
  open.branch.training = source.module.module->is_training();
  open.branch.parameters = trainable_parameters(source.module);
  open.branch.state = state_of(source.module);
  for (const at::Tensor& tensor : open.branch.state)
    open.branch.state_places.push_back(tensor.const_data_ptr());
  open.branch.positional = source.sample.positional.size();
  for (const auto& [name, tensor] : source.sample.named) open.branch.names.push_back(name);
  for (const at::Tensor& input : inputs) {
    open.branch.inputs.push_back(input.detach());
    open.branch.input_gradients.push_back(input.requires_grad());
  }
  std::vector<std::uint32_t> versions;
  for (const at::Tensor& input : open.inputs) versions.push_back(input._version());
  const Inputs arguments = source.sample.with(inputs);
  RunObserver observer(source.module, open.branch.state, inputs, source.where);
  Captured captured = capture(site, std::move(memory.births), [&] {
    Tensors outputs;
    {
      SavedTensors saved(source, memory.copies.saved, observer, open);
      std::optional<SavedTensorScope> hooks;
      const bool copied = source.profile.kind == FrameKind::kCopied;
      if (copied) hooks.emplace([&](const at::Tensor& tensor) { return saved.pack(tensor); });
      outputs = source.module.forward(arguments.positional, arguments.named);
      if (copied) saved.finish();
    }
    if (source.profile.kind != FrameKind::kFree) {
      observer.see_outputs(outputs);
      check_outputs(source, observer.tensors());
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Tensors& places = memory.copies.outputs;
      open.outputs.push_back(outputs[i]);
      if (i >= places.size() || !places[i].defined()) continue;
      open.outputs[i] = places[i];
      open.outputs[i].copy_(outputs[i]);  // with an autograd node
      open.copied_bytes += outputs[i].nbytes();
    }
  });
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (open.inputs[i]._version() == versions[i]) continue;
    throw Error(Error::kContract, {"PS01", source.where, "a write to an input",
                                   "inputs that forward only reads", "write to a clone"});
  }
  open.branch.forward = std::move(captured.graph);
  open.forward_recording = std::move(captured.recording);
  for (const at::Tensor& output : open.outputs)
    open.branch.differentiable.push_back(output.defined() && output.requires_grad());
  return open;
}

Tensors capture_backward(OpenBranch& open, const BranchSource& source, const Tensors& incoming,
                         const CaptureSite& site, CaptureMemory memory) {
  Tensors gradients;
  Captured captured = capture(site, std::move(memory.births), [&] {
    gradients = run_backward(open.outputs, open.inputs, open.branch.parameters, incoming);
    if (source.profile.kind != FrameKind::kFree) {
      RunObserver observer(source.module, open.branch.state, open.inputs, source.where);
      observer.see_gradients(gradients, /*unused_inputs=*/true);
      if (observer.tensors().user_gradients != source.profile.tensors.user_gradients)
        refuse("K05", source.where, "other gradients of inputs");
      if (observer.tensors().parameter_gradients != source.profile.tensors.parameter_gradients)
        refuse("K07", source.where, "gradients of other parameters");
    }
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < memory.copies.gradients.size(); ++i) {
      const at::Tensor& place = memory.copies.gradients[i];
      if (!place.defined() || !gradients[i].defined()) continue;
      at::Tensor(place).copy_(gradients[i]);
      open.copied_bytes += place.nbytes();
    }
  });
  open.branch.backward = std::move(captured.graph);
  open.backward_recording = std::move(captured.recording);
  open.branch.incoming = incoming;
  return gradients;
}

}  // namespace slotgraph

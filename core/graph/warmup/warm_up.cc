#include "core/graph/warmup/warm_up.h"

#include <ATen/ops/empty_strided.h>
#include <fmt/format.h>

#include <optional>
#include <set>

#include "core/device/device.h"
#include "core/error.h"
#include "core/graph/run/saved_hooks.h"
#include "core/graph/state/write_log.h"
#include "core/trace/steps.h"

namespace slotgraph {
namespace {

// One forward and backward. Everything that the run allocated is dead afterwards, except caches.
struct Run {
  BranchProfile profile;
  std::shared_ptr<const Recording> forward;
  std::shared_ptr<const Recording> backward;
};

Tensors run_forward(const GraphModule& module, const Inputs& arguments, FrameKind kind, Run& run,
                    RunObserver& observer) {
  const Session session;
  run.forward = session.recording();
  std::optional<SavedTensorScope> hooks;
  if (kind == FrameKind::kCopied) {
    hooks.emplace([&](const at::Tensor& tensor) {
      observer.see_saved(tensor);
      return tensor;
    });
  }
  return module.forward(arguments.positional, arguments.named);
}

void note_backward(BranchProfile& profile, const Recording& recording, const Tensors& inputs,
                   const Tensors& gradients) {
  const at::Tensor leading = inputs.empty() ? at::Tensor() : gradients[0];
  profile.backward = classify_backward(recording.snapshot(), leading);
  bool placed = !leading.defined();
  for (const ProfiledAllocation& allocation : profile.backward) placed = placed || allocation.role;
  if (!placed) profile.copied_gradient_bytes = storage_bytes(gradient_shape(leading));
}

Run run_once(const GraphModule& module, const Inputs& sample, const std::string& where,
             const Options& options, FrameKind kind) {
  Run run;
  const Tensors inputs = fresh_leaves(sample.all());
  RunObserver observer(module, state_of(module), inputs, where);
  Tensors outputs = run_forward(module, sample.with(inputs), kind, run, observer);
  observer.see_outputs(outputs);  // first: only plain tensors have a storage
  run.profile.forward = classify_forward(run.forward->snapshot(), outputs);
  Tensors incoming;
  for (const at::Tensor& output : outputs) {
    if (!output.defined() || !output.requires_grad()) continue;
    const TensorShape shape = gradient_shape(output);
    run.profile.incoming.push_back(shape);
    incoming.push_back(
        at::empty_strided(shape.sizes, shape.strides, output.options().requires_grad(false))
            .fill_(1));
  }
  if (!incoming.empty()) {
    Tensors gradients;
    {
      const Session session;
      run.backward = session.recording();
      gradients = run_backward(outputs, inputs, trainable_parameters(module), incoming);
    }
    note_backward(run.profile, *run.backward, inputs, gradients);
    observer.see_gradients(gradients, options.unused_inputs);
  }
  run.profile.tensors = observer.tensors();
  return run;
}

// A lazy module may have made an input a part of its state.
void check_state(const GraphModule& module, const Inputs& sample, const std::string& where) {
  const Tensors inputs = sample.all();
  for (const at::Tensor& state : state_of(module)) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (state.numel() == 0 || !state.is_alias_of(inputs[i])) continue;
      throw Error(Error::kContract,
                  {"W12", where, fmt::format("input {} in the state after warm-up", i),
                   "state that is no input", "clone the input before it becomes a buffer"});
    }
  }
}

// The caller's callbacks around one module's warm-up.
class Hooks {
 public:
  Hooks(const Options& options, int module) : options_(options), module_(module) {
    if (options.before_warm_up) options.before_warm_up(module);
    pending_ = true;
  }
  void finish() {
    pending_ = false;
    if (options_.after_warm_up) options_.after_warm_up(module_);
  }
  ~Hooks() noexcept(false) {
    if (!pending_ || !options_.after_warm_up) return;
    try {
      options_.after_warm_up(module_);
    } catch (const std::exception& error) {
      // The exception on its way is the cause; this one can only be told.
      fmt::print(stderr, "slotgraph: the hook after the warm-up of module {} failed: {}\n", module_,
                 error.what());
    }
  }
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

 private:
  const Options& options_;
  int module_;
  bool pending_ = false;
};

}  // namespace

void check_nothing_lives(const GraphModule& module, const Recording& forward,
                         const Recording* backward, const std::string& where) {
  std::set<const void*> held;
  if (module.held) {
    for (const at::Tensor& tensor : module.held())
      if (tensor.defined()) held.insert(tensor.storage().data());
  }
  for (const Recording* const recording : {&forward, backward}) {
    if (!recording) continue;
    for (const Allocation& allocation : recording->snapshot()) {
      if (!allocation.alive || held.contains(allocation.address)) continue;
      throw Error(Error::kContract,
                  {"PM01", where,
                   fmt::format("an allocation of {} bytes that outlives the frame's outputs, "
                               "gradients and autograd graph",
                               allocation.bytes),
                   "caches that exist after the first run of the warm-up",
                   "allocate caches once, or name what the module keeps in GraphModule::held"});
    }
  }
}

BranchProfile warm_up(const GraphModule& module, const Inputs& sample, int index,
                      const Options& options, FrameKind kind) {
  const trace::PhaseScope phase(trace::Phase::warm_up);
  const std::string where = fmt::format("warm-up of module {} ({})", index, name_of(module));
  Hooks hooks(options, index);
  std::optional<WriteLog> writes(std::in_place);
  BranchProfile profile;
  for (int iteration = 0; iteration < options.warm_up_iterations; ++iteration) {
    Run run = run_once(module, sample, where, options, kind);
    check_state(module, sample, where);
    // The first run may have filled caches: what it allocated says nothing about later ones.
    if (iteration > 0) {
      if (kind == FrameKind::kPlaced)
        check_nothing_lives(module, *run.forward, run.backward.get(), where);
      if (kind != FrameKind::kFree) check_same(profile.tensors, run.profile.tensors, where);
    }
    if (iteration > 1) {
      run.profile.forward = merge(profile.forward, run.profile.forward);
      run.profile.backward = merge(profile.backward, run.profile.backward);
    }
    profile = std::move(run.profile);
    profile.kind = kind;
  }
  writes.reset();
  hooks.finish();
  device::synchronise();
  return profile;
}

}  // namespace slotgraph

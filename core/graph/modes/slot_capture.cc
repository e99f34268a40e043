#include "core/graph/modes/slot_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/graph/modes/graph_set.h"
#include "core/memory/borrowed.h"
#include "core/memory/checkpoint.h"
#include "core/trace/steps.h"

namespace slotgraph {
namespace {

// The layout is complete before anything is allocated.
SlotLayout complete_layout(const CaptureRequest& request,
                           const std::vector<BranchProfile>& profiles) {
  const trace::PhaseScope phase(trace::Phase::layout);
  return lay_out_slots(request, profiles);
}

std::shared_ptr<Slab> make_slab(const PrivatePool& pool, std::size_t bytes) {
  const trace::PhaseScope phase(trace::Phase::layout);
  trace::reached(trace::Step::arena_allocation);
  auto slab = std::make_shared<Slab>(pool, bytes);
  trace::reached(trace::Step::staging);
  return slab;
}

// Where a colour has no arena, nothing of its frames survives.
Arena arena_of(const std::map<int, Extent>& arenas, int colour, const std::shared_ptr<Slab>& slab) {
  const auto it = arenas.find(colour);
  const Extent extent = it == arenas.end() ? Extent() : it->second;
  return {slab, extent.offset, extent.bytes};
}

// Frame memory is borrowed: outputs of one storage share one again. A view of a parameter or buffer
// stays what it is.
void keep_outputs(OpenBranch& open, const FrameMemory& memory) {
  Tensors in_frame;
  for (const at::Tensor& output : open.outputs) {
    const bool inside =
        output.defined() && output.numel() > 0 && memory.slab()->contains(output.const_data_ptr());
    open.branch.lent.push_back(inside);
    in_frame.push_back(inside ? output : at::Tensor());
  }
  open.branch.outputs = borrowed_alike(in_frame, memory.slab());
  for (std::size_t i = 0; i < open.outputs.size(); ++i) {
    const at::Tensor& output = open.outputs[i];
    if (open.branch.lent[i] || !output.defined()) continue;
    const Tensors& state = open.branch.state;
    const bool in_state = std::any_of(state.begin(), state.end(), [&](const at::Tensor& tensor) {
      return tensor.is_alias_of(output);
    });
    if (output.is_cuda() && output.numel() == 0) {
      // Without bytes: it would keep the storage of others alive.
      open.branch.outputs[i] =
          borrowed_tensor(nullptr, output.sizes(), output.strides(), output.scalar_type(), nullptr);
    } else if (in_state || output.is_cpu()) {
      open.branch.outputs[i] = output.detach();
    } else {
      throw Error(Error::kContract,
                  {"PM02", fmt::format("output {} of branch {}", i, memory.branch().index),
                   "memory of neither the frame nor its module",
                   "outputs that forward computes, or views of inputs, parameters or buffers",
                   "return a copy of tensors that live elsewhere"});
    }
  }
}

// Gradients with a place stay there; the others are in transient memory, valid from their replay
// until the next one, which is when they are copied or lent.
Tensors kept_gradients(const Tensors& gradients, const Tensors& places,
                       const std::shared_ptr<Slab>& slab) {
  Tensors kept;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const at::Tensor& gradient = gradients[i];
    if (!gradient.defined()) {
      kept.emplace_back();
    } else if (i < places.size() && places[i].defined()) {
      kept.push_back(places[i]);
    } else {
      kept.push_back(borrowed_tensor(gradient.data_ptr(), gradient.sizes(), gradient.strides(),
                                     gradient.scalar_type(), slab));
    }
  }
  return kept;
}

}  // namespace

SlotCapture::SlotCapture(const CaptureRequest& request, const std::vector<BranchProfile>& profiles,
                         LeakCheck leaks)
    : request_(request),
      profiles_(profiles),
      leaks_(leaks),
      pool_(std::make_shared<PrivatePool>()),
      layout_(complete_layout(request, profiles)),
      slab_(make_slab(*pool_, layout_.bytes)),
      branches_(request.samples.size()) {}

std::vector<c10::Storage> SlotCapture::roots() const {
  std::vector<c10::Storage> roots{slab_->storage()};
  for (const GraphModule& module : request_.modules) {
    if (!module.held) continue;
    for (const at::Tensor& tensor : module.held())
      if (tensor.defined()) roots.push_back(tensor.storage());
  }
  for (const auto& [branch, frame] : open_) {
    for (const auto& original : frame.open.originals) {
      if (auto storage = original.lock()) roots.emplace_back(std::move(storage));
    }
  }
  return roots;
}

std::unique_ptr<FrameMemory> SlotCapture::memory_of(int branch) const {
  const Slot& slot = request_.plan.slots[branch];
  return FrameMemory::of({branch,
                          slot.module,
                          request_.plan.layer_of(branch),
                          slot,
                          {request_.modules[slot.module], request_.samples[branch],
                           profiles_[slot.module], fmt::format("capture of branch {}", branch)},
                          arena_of(layout_.arenas, slot.colour, slab_),
                          arena_of(layout_.gradient_arenas, slot.gradient_colour, slab_)},
                         layout_);
}

SlotCapture::Live SlotCapture::live(const FrameMemory& memory) const {
  if (!memory.is_copied() || leaks_ == LeakCheck::kByTheCaller) return std::nullopt;
  return topology_of(*pool_).live();
}

void SlotCapture::check_leaks(const Live& before) const {
  if (!before) return;
  std::map<const void*, std::size_t> added = topology_of(*pool_).live();
  for (const auto& [address, bytes] : *before) added.erase(address);
  if (!added.empty()) (void)resolve_owners(added, roots());
}

void SlotCapture::forward(int branch) {
  const trace::PhaseScope phase(trace::Phase::capture_forward);
  std::unique_ptr<FrameMemory> memory = memory_of(branch);
  const Live before = live(*memory);
  OpenBranch open = capture_forward(memory->branch().source, memory->static_inputs(), site(),
                                    memory->begin_forward());
  memory->settle_forward(open);
  keep_outputs(open, *memory);
  open_[branch] = {std::move(memory), std::move(open)};
  check_leaks(before);
}

void SlotCapture::capture_gradients(OpenBranch& open, const FrameMemory& memory) const {
  const CaptureMemory told = memory.begin_backward();
  const Tensors gradients =
      capture_backward(open, memory.branch().source, memory.incoming(), site(), told);
  memory.settle_backward(open, gradients);
  open.branch.gradients = kept_gradients(gradients, told.copies.gradients, slab_);
  open.branch.leading_stays = memory.returns_leading_gradient();
}

void SlotCapture::backward(int branch) {
  const trace::PhaseScope phase(trace::Phase::capture_backward);
  const std::unique_ptr<FrameMemory> memory = std::move(open_.at(branch).memory);
  OpenBranch open = std::move(open_.at(branch).open);
  open_.erase(branch);
  if (!memory->branch().source.profile.incoming.empty()) {
    const Live before = live(*memory);
    capture_gradients(open, *memory);
    open.drop_autograd_graph();
    check_leaks(before);
  }
  open.drop_autograd_graph();
  memory->end(open);
  copied_bytes_ += open.copied_bytes;
  open.branch.ownership = memory->ownership();
  branches_[branch] = std::move(open.branch);
}

std::vector<int> SlotCapture::variants_by_survivor_bytes() const {
  const Plan& plan = request_.plan;
  std::vector<std::size_t> bytes(static_cast<std::size_t>(plan.variants()));
  for (int module = 0; module < plan.modules(); ++module)
    bytes[plan.variant_of_module(module)] += memory_of(plan.first_branch(module))->survivor_bytes();
  std::vector<int> variants(bytes.size());
  std::iota(variants.begin(), variants.end(), 0);
  std::stable_sort(variants.begin(), variants.end(),
                   [&](int a, int b) { return bytes[a] > bytes[b]; });
  return variants;
}

// The pool grows while the variant with the most survivors is captured, and the others fit into
// what it left: captured the other way round, each would add segments of its own sizes.
void SlotCapture::capture_variant_major() {
  for (const int variant : variants_by_survivor_bytes()) {
    walk_variant(
        request_, variant, [&](int branch) { forward(branch); },
        [&](int branch) { backward(branch); });
  }
}

std::vector<FlightPlan> SlotCapture::flights() const {
  std::vector<FlightPlan> result;
  for (int i = 0; i < static_cast<int>(branches_.size()); ++i) {
    const Slot& slot = request_.plan.slots[i];
    std::optional<int> gradient;
    if (branches_[i].leading_stays) gradient = slot.gradient_colour;
    result.push_back(
        {slot.colour, request_.plan.frame_of(i), slot.model_chunk, slot.physical_slot, gradient});
  }
  return result;
}

std::unique_ptr<CallableSet> SlotCapture::finish() {
  trace::reached(trace::Step::capture_finished);
  std::vector<FlightPlan> plans = flights();
  return std::make_unique<GraphSet>(request_.options, std::move(branches_), std::move(plans),
                                    std::vector{pool_}, layout_.arena_bytes, copied_bytes_);
}

}  // namespace slotgraph

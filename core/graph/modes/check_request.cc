#include "core/graph/modes/check_request.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <map>
#include <set>

#include "core/error.h"
#include "core/graph/plain_tensor.h"
#include "core/graph/state/allocator_settings.h"
#include "core/order/branch_order.h"
#include "core/plan/capture_call.h"

namespace slotgraph {
namespace {

void require(bool holds, const char* rule, std::string where, std::string found,
             std::string expected, std::string advice) {
  if (!holds)
    throw Error(Error::kContract,
                {rule, std::move(where), std::move(found), std::move(expected), std::move(advice)});
}

void note(std::optional<std::string>& first, std::string where) {
  if (!first) first = std::move(where);
}

// Where the first offence of each kind is.
CaptureCall::Tensors tensor_offences(const CaptureRequest& request) {
  CaptureCall::Tensors offences;
  std::set<const void*> state;
  for (std::size_t m = 0; m < request.modules.size(); ++m) {
    for (const at::Tensor& buffer : buffers_of(request.modules[m])) {
      if (buffer.defined() && buffer.requires_grad())
        note(offences.buffer_requires_grad, fmt::format("module {}", m));
    }
    for (const at::Tensor& tensor : state_of(request.modules[m]))
      if (tensor.numel() > 0) state.insert(tensor.storage().unsafeGetStorageImpl());
  }
  for (std::size_t b = 0; b < request.samples.size(); ++b) {
    const Inputs& sample = request.samples[b];
    if (sample.positional.empty()) note(offences.leading, fmt::format("sample of branch {}", b));
    const Tensors inputs = sample.all();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string where = fmt::format("sample of branch {}, input {}", b, i);
      const bool positional = i < sample.positional.size();
      if (const auto reason = no_static_place(inputs[i])) {
        note(positional ? offences.positional : offences.named, where + " (" + *reason + ")");
      } else if (state.contains(inputs[i].storage().unsafeGetStorageImpl())) {
        note(offences.state_alias, where);
      }
    }
  }
  return offences;
}

// The call as the published runtime would see it: all variants' chunks, one after another.
CaptureCall capture_call(const CaptureRequest& request) {
  const Plan& plan = request.plan;
  CaptureCall call;
  const Order order =
      branch_order(request.order, plan.chunks(), plan.variants(),
                   request.options.canonical_variant.value_or(canonical_variant(plan.variants())),
                   BranchArrangement::kLockstep);
  call.order = OrderEntries(order.begin(), order.end());
  std::vector<int> layers;
  for (int variant = 0; variant < plan.variants(); ++variant)
    layers.insert(layers.end(), plan.layers_per_chunk.begin(), plan.layers_per_chunk.end());
  call.layers = layers;
  for (std::size_t m = 0; m < request.modules.size(); ++m)
    call.callables.push_back({static_cast<int>(m), request.modules[m].module->is_training()});
  call.samples = static_cast<int>(request.samples.size());
  call.slots.emplace();
  for (const Slot& slot : plan.slots) {
    call.slots->push_back({slot.colour, slot.physical_slot, slot.io_branch_id, slot.model_chunk,
                           slot.layer, slot.module, slot.gradient_colour});
  }
  call.warm_up_iterations = request.options.warm_up_iterations;
  call.autocast_caches_weights =
      at::autocast::is_autocast_enabled(at::kCUDA) && at::autocast::is_autocast_cache_enabled();
  call.native_allocator = native_caching_on();
  call.tensors = tensor_offences(request);
  return call;
}

bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset() && a.scalar_type() == b.scalar_type() &&
         a.requires_grad() == b.requires_grad();
}

// The branch takes what the first branch of its module takes, and aliases it in the same way.
void check_alias_frame(const Inputs& sample, const Inputs& first, std::size_t branch) {
  const std::string where = fmt::format("sample of branch {}", branch);
  const Tensors inputs = sample.all(), expected = first.all();
  bool same_names = sample.named.size() == first.named.size();
  for (std::size_t i = 0; same_names && i < sample.named.size(); ++i)
    same_names = sample.named[i].first == first.named[i].first;
  require(inputs.size() == expected.size() && same_names, "W07", where,
          fmt::format("{} inputs, {} of them named", inputs.size(), sample.named.size()),
          fmt::format("{} and {}, with the names of the first branch of its module",
                      expected.size(), first.named.size()),
          "pass equal samples");
  std::map<const void*, const void*> forward, backward;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string input = fmt::format("{}, input {}", where, i);
    require(same_layout(inputs[i], expected[i]), "W08", input,
            "other sizes, strides, offset, dtype or gradient wish than " + describe(expected[i]),
            "those of the first branch of its module", "pass equal samples");
    const void* const here = inputs[i].storage().unsafeGetStorageImpl();
    const void* const there = expected[i].storage().unsafeGetStorageImpl();
    require(forward.emplace(there, here).first->second == here, "W09", input,
            "memory apart from an input that it shares memory with in the first branch",
            "the same aliases", "pass equal samples");
    require(backward.emplace(here, there).first->second == there, "W10", input,
            "memory of another input, which it does not share in the first branch",
            "the same aliases", "pass equal samples");
  }
}

}  // namespace

void check_request(const CaptureRequest& request) {
  for (std::size_t m = 0; m < request.modules.size(); ++m) {
    require(request.modules[m].module && request.modules[m].forward, "C00",
            fmt::format("module {}", m), "no module or no forward function", "both",
            "fill in GraphModule");
  }
  check(request.plan);
  check_order(request.order, request.plan.chunks());
  check(capture_call(request));
  const Plan& plan = request.plan;
  std::vector<int> first(request.modules.size(), -1);
  for (std::size_t i = 0; i < request.samples.size(); ++i) {
    int& branch = first[plan.slots[i].module];
    if (branch < 0) branch = static_cast<int>(i);
    check_alias_frame(request.samples[i], request.samples[branch], i);
  }
}

}  // namespace slotgraph

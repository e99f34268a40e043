// What a call must leave as it was, on success and on any failure.
#ifndef CORE_GRAPH_STATE_PROCESS_STATE_H_
#define CORE_GRAPH_STATE_PROCESS_STATE_H_

#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <vector>

#include "core/graph/graph_module.h"
#include "core/graph/state/allocator_settings.h"

namespace torch::autograd {
struct Node;
}

namespace slotgraph {

// True on the thread, and during the time, of a call's warm-up and capture: for modules that must
// know.
bool capturing();

// One capture call at a time in a process: graphs in the making, allocator scopes and settings are
// the process's. Sets capturing(). Throws Error G01 if another call runs, on this thread or
// another.
class CaptureTurn {
 public:
  CaptureTurn();
  ~CaptureTurn();
  CaptureTurn(const CaptureTurn&) = delete;
  CaptureTurn& operator=(const CaptureTurn&) = delete;
};

// Takes a snapshot of the modules' and the samples' state; the destructor restores it: buffers
// (quantisation state among them), requires_grad, and which tensor .grad is. Meanwhile parameters
// have no AccumulateGrad node from before: autograd would synchronise with the stream on which that
// one was made, which no capture allows if it is the default one.
class ModuleStateGuard {
 public:
  ModuleStateGuard(const std::vector<GraphModule>& modules, const std::vector<Inputs>& samples);
  ~ModuleStateGuard();
  ModuleStateGuard(const ModuleStateGuard&) = delete;
  ModuleStateGuard& operator=(const ModuleStateGuard&) = delete;

  // Throws Error: PS02 another tensor, or other memory, in place of a parameter or buffer; PS01 an
  // input or parameter was written in place.
  void check() const;

 private:
  struct Leaf {  // a parameter or an input
    at::Tensor tensor;
    std::uint32_t version;
    bool requires_grad;
    at::Tensor grad;
    // Its AccumulateGrad node, if something keeps one alive.
    std::weak_ptr<torch::autograd::Node> accumulator = {};
  };
  static void take_accumulators(std::vector<Leaf>& leaves);
  struct Saved {
    GraphModule module;
    Tensors parameters;
    Tensors buffers;
    std::vector<const void*> addresses;  // of both
    Tensors contents;                    // of the buffers
  };
  void check_replaced(const Saved& saved) const;

  std::vector<Saved> modules_;
  std::vector<Leaf> parameters_;
  std::vector<Leaf> inputs_;
};

// States of the default generator and of others; the destructor sets them again.
class GeneratorGuard {
 public:
  explicit GeneratorGuard(std::vector<at::Generator> generators);
  ~GeneratorGuard();
  GeneratorGuard(const GeneratorGuard&) = delete;
  GeneratorGuard& operator=(const GeneratorGuard&) = delete;

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

// Makes a stream of the current device the current one; the destructor restores stream and device.
// c10's own guard ends the process if a runtime call fails in its destructor.
class CurrentStreamGuard {
 public:
  explicit CurrentStreamGuard(c10::cuda::CUDAStream stream);
  ~CurrentStreamGuard();
  CurrentStreamGuard(const CurrentStreamGuard&) = delete;
  CurrentStreamGuard& operator=(const CurrentStreamGuard&) = delete;

 private:
  c10::cuda::CUDAStream before_;
};

// All of it, on the stream for captures, with gradients enabled; undone in reverse order.
// The device is idle when it is made and when it is gone.
class ProcessStateGuard {
 public:
  ProcessStateGuard(const std::vector<GraphModule>& modules, const std::vector<Inputs>& samples,
                    const std::vector<at::Generator>& generators);

  void check() const { modules_.check(); }

 private:
  struct Idle {
    Idle();
    ~Idle();
  };
  AllocatorSettingsGuard settings_;  // before anything is allocated
  CurrentStreamGuard stream_;
  at::AutoGradMode grad_{true};
  Idle idle_;
  ModuleStateGuard modules_;
  GeneratorGuard generators_;
};

}  // namespace slotgraph

#endif  // CORE_GRAPH_STATE_PROCESS_STATE_H_

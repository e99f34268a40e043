// No graphs.
#include "core/graph/modes/graph_set.h"
#include "core/graph/modes/modes.h"

namespace slotgraph {
namespace {

class EagerCallable final : public Callable {
 public:
  explicit EagerCallable(GraphModule module) : module_(std::move(module)) {}
  Tensors forward(const Inputs& inputs, const ReplayOptions&) override {
    return module_.forward(inputs.positional, inputs.named);
  }
  Tensors static_inputs() const override { return {}; }
  void release() override {}
  void reset() override {}

 private:
  GraphModule module_;
};

class EagerSet final : public CallableSet {
 public:
  explicit EagerSet(const CaptureRequest& request) {
    for (std::size_t i = 0; i < request.samples.size(); ++i) {
      callables_.push_back(std::make_unique<EagerCallable>(request.module_of(static_cast<int>(i))));
    }
  }
  Callable& at(int branch) override {
    check_branch(branch, callables_.size());
    return *callables_[static_cast<std::size_t>(branch)];
  }
  void note_empty_backward(int, int) override {}
  void end_step() override {}
  void release() override {}
  MemoryUse memory() const override { return {}; }

 private:
  std::vector<std::unique_ptr<EagerCallable>> callables_;
};

}  // namespace

std::unique_ptr<CallableSet> make_eager(const CaptureRequest& request) {
  return std::make_unique<EagerSet>(request);
}

}  // namespace slotgraph

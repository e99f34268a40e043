#include "core/graph/run/saved_hooks.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>
#include <mutex>

namespace slotgraph {
namespace {

thread_local SavedTensorScope::Pack* innermost = nullptr;
thread_local int open_scopes = 0;

struct Hooks final : torch::autograd::SavedVariableHooks {
  explicit Hooks(SavedTensorScope::Pack& pack) : pack(&pack) {}
  // Called once, at once. A detached tensor makes no cycle with a node that saves its own output.
  void call_pack_hook(const at::Tensor& tensor) override {
    packed = (*pack)(tensor.detach());
    pack = nullptr;
  }
  at::Tensor call_unpack_hook() override { return packed; }

  SavedTensorScope::Pack* pack;
  at::Tensor packed;
};

class HookEngine final : public torch::autograd::Engine {
 public:
  static torch::autograd::Engine& instance() {
    static HookEngine* const engine = new HookEngine();
    return *engine;
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return innermost ? std::make_unique<Hooks>(*innermost) : nullptr;
  }

 private:
  HookEngine() = default;
};

}  // namespace

SavedTensorScope::SavedTensorScope(Pack pack) : pack_(std::move(pack)), outer_(innermost) {
  static std::once_flag installed;
  std::call_once(installed, [] {
    torch::autograd::set_default_engine_stub(
        []() -> torch::autograd::Engine& { return HookEngine::instance(); });
  });
  innermost = &pack_;
  ++open_scopes;
}

SavedTensorScope::~SavedTensorScope() {
  innermost = outer_;
  --open_scopes;
}

int SavedTensorScope::depth() { return open_scopes; }

}  // namespace slotgraph

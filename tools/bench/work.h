// One training step of graphed callables, as it is measured: the first of `ring` pipeline stages,
// where all slots are live together.
#ifndef TOOLS_BENCH_WORK_H_
#define TOOLS_BENCH_WORK_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph_callables.h"
#include "core/plan/plan.h"

namespace slotgraph::bench {

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point from);

struct Work {
  std::string block = "transformer_mlp";  // norm, h to 4h, gelu, 4h to h, residual
  std::int64_t hidden = 1024;
  at::ScalarType dtype = at::kBFloat16;
  int tokens = 4096;  // of the largest variant
  bool equal_tokens = false;
  int layers = 2;
  int ring = 4;
  std::vector<int> cp_sizes = {8, 4, 2, 1};

  int frames() const { return layers * ring; }  // of a variant
  int variants() const { return static_cast<int>(cp_sizes.size()); }
  std::string name() const;
};

// A set of callables over a model. Parameter gradients are lent, unless they are cloned.
class Station {
 public:
  enum class Gradients { kLent, kCloned };
  Station(const Work& work, Mode mode, Gradients gradients);

  // Captures anew.
  void capture();
  double warm_up_milliseconds() const { return warm_up_; }
  double capture_milliseconds() const { return capture_; }

  // One microbatch in every slot, forward then backward, in one variant. If `found` is given it
  // gets the gradients of all parameters (clones), of every frame.
  void step(int variant, Tensors* found = nullptr);

  const CallableSet& set() const { return *set_; }
  const Plan& plan() const { return plan_; }
  void drop() { set_.reset(); }

 private:
  Work work_;
  Plan plan_;
  std::vector<GraphModule> layers_, modules_;
  Tensors inputs_;  // of each variant
  std::vector<Inputs> samples_;
  Options options_;
  std::unique_ptr<CallableSet> set_;
  double warm_up_ = 0;
  double capture_ = 0;
};

}  // namespace slotgraph::bench

#endif  // TOOLS_BENCH_WORK_H_

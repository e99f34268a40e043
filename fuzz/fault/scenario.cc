#include "fuzz/fault/scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/device/device.h"
#include "core/plan/planner.h"
#include "core/trace/steps.h"
#include "fuzz/execute/driver.h"
#include "fuzz/execute/execute.h"

namespace slotgraph::fuzz {
namespace {

using trace::Step;

// Gradients of the first output pass the step module_backward.
GraphModule announcing(const GraphModule& module) {
  GraphModule result = module;
  result.forward = [inner = module.forward](at::TensorList inputs, const NamedTensors& named) {
    trace::reached(Step::module_forward);
    std::vector<at::Tensor> outputs = inner(inputs, named);
    if (outputs[0].requires_grad()) {
      outputs[0].register_hook([](const at::Tensor& gradient) {
        trace::reached(Step::module_backward);
        return gradient;
      });
    }
    return outputs;
  };
  return result;
}

Case make_case(const std::string& name, const PipelineShape& shape, std::vector<int> layers,
               int ring, int microbatches, const std::vector<std::string>& blocks) {
  PlanRequest request;
  request.name = name;
  request.shape = shape;
  request.layers_per_chunk = std::move(layers);
  request.cp_sizes = {2, 1};
  request.counts = {microbatches};
  request.ring_length = ring;
  Case value;
  value.seed = 1;
  value.plan = make_plan(request);
  value.schedule.source = name;
  for (int i = 0; i < microbatches; ++i) value.schedule.variants.push_back((i / 2 + i) % 2);
  for (int i = 0; i < value.plan.layers(); ++i) {
    LayerCase layer;
    layer.block = blocks[static_cast<std::size_t>(i) % blocks.size()];
    value.layers.push_back(layer);
  }
  value.hidden = 8;
  value.tokens = {4, 8};
  value.steps = 1;
  value.order_seed = 7;
  return value;
}

const Case& configured(const Case& value) {
  device::configure(simulation_of(value));
  return value;
}

// The harness drops what it holds in the phase `teardown`.
struct SetTeardown {
  std::unique_ptr<CallableSet> set;
  ~SetTeardown() {
    const trace::PhaseScope phase(trace::Phase::teardown);
    set.reset();
  }
};

}  // namespace

Case reference_case() {
  PipelineShape shape;
  shape.pipeline_size = 2;
  shape.virtual_stages = 2;
  shape.microbatch_group_size = 2;
  return make_case("reference", shape, {2, 2}, 4, 8,
                   {"mlp", "two_inputs", "dropout", "running_mean"});
}

Case other_case() {
  PipelineShape shape;
  shape.pipeline_size = 2;
  return make_case("other", shape, {1}, 0, 4, {"add_inputs"});
}

Subject::Subject(Case value) : case_(std::move(value)), model_(case_), samples_(model_.samples()) {
  for (const GraphModule& module : model_.modules_of_variants())
    modules_.push_back(announcing(module));
  model_.reset();
  const auto eager = graph_callables(modules_, samples_, case_.plan.base_order, case_.plan,
                                     {.mode = Mode::kEager});
  Driver(model_, *eager, *truth_, {.pass_zeros = true}).run();
}

std::unique_ptr<CallableSet> Subject::capture(Mode mode) {
  Options options;
  options.mode = mode;
  options.before_warm_up = [](int) { trace::reached(Step::hook_before_warm_up); };
  options.after_warm_up = [](int) { trace::reached(Step::hook_after_warm_up); };
  return graph_callables(modules_, samples_, case_.plan.base_order, case_.plan, options);
}

std::vector<std::string> Subject::drive(CallableSet& set) {
  const auto comparer = truth_->make_comparer("slot");
  Driver(model_, set, *comparer, {}).run();
  std::vector<std::string> differences;
  for (const Finding& finding : comparer->findings())
    differences.push_back(finding.where + ": " + finding.what);
  return differences;
}

std::vector<std::string> Subject::run(Mode mode) {
  SetTeardown dropped{capture(mode)};
  return drive(*dropped.set);
}

Scenario::Scenario(const Case& value, Mode mode)
    : case_(configured(value)),
      mode_(mode),
      subject_(value),
      other_(other_case()),
      earlier_(other_.capture(mode)) {
  // What is made with first use, and kept: streams, events, caches.
  for (int i = 0; i < 2; ++i) {
    (void)subject_.run(mode_);
    (void)other_.run(mode_);
    (void)other_.drive(*earlier_);
  }
  most_events_ = device::resources().events;
}

void Scenario::run() {
  differences_.clear();
  in_capture_ = true;
  SetTeardown dropped{subject_.capture(mode_)};
  in_capture_ = false;
  differences_ = subject_.drive(*dropped.set);
}

std::vector<std::string> Scenario::changed_state() {
  subject_.reset();  // what the harness keeps for the next microbatch
  std::vector<std::string> found = StateSnapshot::take(subject_.modules()).differences(before_);
  // What the device refuses again and again to destroy stays.
  const Injector& injector = Injector::instance();
  if (injector.persistent() &&
      (injector.failed("cudaGraphDestroy") || injector.failed("cudaGraphExecDestroy")))
    std::erase_if(found, [](const std::string& what) { return what.starts_with("graphs:"); });
  return found;
}

std::vector<std::string> Scenario::changed_contents() const {
  if (!in_capture_ || contents_digest(subject_.modules()) == contents_before_) return {};
  return {"parameters, buffers or the generator are not what they were before the call"};
}

// The allocator keeps events for later use: one that is missing there has been left over.
std::vector<std::string> Scenario::left_events() const {
  const std::size_t events = device::resources().events;
  // c10::Event destroys its event once, and loses one that it has made and cannot record.
  const bool upstream = Injector::instance().failed("cudaEventDestroy") ||
                        Injector::instance().failed("cudaEventRecord");
  if (events <= most_events_ || upstream) return {};
  return {fmt::format("found {}, expected {} or fewer, as after runs without failure", events,
                      most_events_)};
}

Operation Scenario::operation() {
  Operation operation;
  operation.prepare = [this] {
    subject_.reset();
    before_ = StateSnapshot::take(subject_.modules());
    (void)configured(case_);
    most_events_ = std::max(most_events_, device::resources().events);
    contents_before_ = contents_digest(subject_.modules());
  };
  operation.run = [this] { run(); };
  operation.contracts = {
      {"contents", [this] { return changed_contents(); }},
      {"state", [this] { return changed_state(); }},
      {"values", [this] { return differences_; }},
      {"earlier graphs", [this] { return other_.drive(*earlier_); }},
      {"same case again", [this] { return subject_.run(mode_); }},
      {"another case", [this] { return other_.run(mode_); }},
      {"events", [this] { return left_events(); }},
  };
  return operation;
}

Trial Scenario::run_injected(
    const Injection& injection,
    const std::function<void(const std::vector<std::string>& stack)>& before) {
  Operation operation = this->operation();
  const bool lost = traits(injection.fault).loses_device;
  if (lost) operation.contracts.clear();
  Trial trial = try_once(operation, injection, before);
  if (lost && trial.fired > 0 && trial.error.empty())
    trial.findings.emplace_back("error: the device was lost, and the operation came to its end");
  return trial;
}

}  // namespace slotgraph::fuzz

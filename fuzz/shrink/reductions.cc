#include "fuzz/shrink/reductions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/plan/planner.h"

namespace slotgraph::fuzz {
namespace {

PlanRequest request_of(const Plan& plan) {
  PlanRequest request;
  request.name = "shrunk";
  request.shape = plan.shape;
  request.layers_per_chunk = plan.layers_per_chunk;
  request.cp_sizes = plan.cp_sizes;
  request.counts = plan.covered_counts;
  return request;
}

class Collector {
 public:
  explicit Collector(const Experiment& from) : from_(from) {}

  // The same with something changed.
  void with(std::string what, const std::function<void(Experiment&)>& change) {
    Experiment smaller = from_;
    change(smaller);
    if (to_json(smaller) != to_json(from_))
      result_.push_back({std::move(what), std::move(smaller)});
  }

  // Another plan, for the schedule that `change` leaves; nothing if the planner refuses it.
  void replanned(std::string what, const std::function<void(PlanRequest&, Case&)>& change) {
    Experiment smaller = from_;
    Case& value = smaller.value;
    PlanRequest request = request_of(value.plan);
    change(request, value);
    request.counts = {static_cast<int>(value.schedule.variants.size())};
    value.schedule.source = "shrunk";
    try {
      value.plan = make_plan(request);
      check(value.plan);
    } catch (const Error&) {
      return;
    }
    if (to_json(smaller) != to_json(from_))
      result_.push_back({std::move(what), std::move(smaller)});
  }

  std::vector<Reduction> take() { return std::move(result_); }

 private:
  const Experiment& from_;
  std::vector<Reduction> result_;
};

void shapes(Collector& collect, const Case& value) {
  const PipelineShape now = value.plan.shape;
  const auto flat = [](PlanRequest& request, int stages) {
    request.shape = {};
    request.shape.pipeline_size = stages;
    request.layers_per_chunk = {
        std::accumulate(request.layers_per_chunk.begin(), request.layers_per_chunk.end(), 0)};
  };
  collect.replanned("the planner's own slots", [](PlanRequest&, Case&) {});
  for (const int stages : {1, 2}) {
    const bool smaller = now.virtual_stages > 0 || stages < now.pipeline_size;
    if (!smaller || stages > now.pipeline_size) continue;
    collect.replanned(fmt::format("{} stages, no virtual ones", stages),
                      [&](PlanRequest& request, Case&) { flat(request, stages); });
  }
  if (now.rank > 0)
    collect.replanned("rank 0", [](PlanRequest& request, Case&) { request.shape.rank = 0; });
}

void keep_variants(Collector& collect, const Case& value, const std::vector<int>& kept) {
  collect.replanned(fmt::format("variants {}", fmt::join(kept, " ")),
                    [&](PlanRequest& request, Case& smaller) {
                      request.cp_sizes.clear();
                      smaller.tokens.clear();
                      for (const int variant : kept) {
                        request.cp_sizes.push_back(value.plan.cp_sizes[variant]);
                        smaller.tokens.push_back(value.tokens[variant]);
                      }
                      for (int& variant : smaller.schedule.variants) {
                        const auto it = std::find(kept.begin(), kept.end(), variant);
                        variant = it == kept.end() ? variant % static_cast<int>(kept.size())
                                                   : static_cast<int>(it - kept.begin());
                      }
                    });
}

void variants(Collector& collect, const Case& value) {
  const int count = value.plan.variants();
  if (count == 1) return;
  for (int i = 0; i < count; ++i) keep_variants(collect, value, {i});
  for (int i = 0; i < count && count > 2; ++i)
    for (int k = i + 1; k < count; ++k) keep_variants(collect, value, {i, k});
}

void microbatches(Collector& collect, const Case& value) {
  const auto& all = value.schedule.variants;
  const int count = static_cast<int>(all.size());
  for (const int fewer : std::set<int>{1, 2, 3, 4, count / 2, count - 1}) {
    if (fewer < 1 || fewer >= count) continue;
    collect.replanned(
        fmt::format("the first {} microbatches", fewer),
        [&](PlanRequest&, Case& smaller) { smaller.schedule.variants.resize(fewer); });
    collect.replanned(fmt::format("the last {} microbatches", fewer),
                      [&](PlanRequest&, Case& smaller) {
                        smaller.schedule.variants.assign(all.end() - fewer, all.end());
                      });
  }
  // The same variant everywhere but in one place.
  for (int i = 0; i < count; ++i) {
    if (all[i] == 0) continue;
    collect.with(fmt::format("microbatch {} in variant 0", i),
                 [&](Experiment& smaller) { smaller.value.schedule.variants[i] = 0; });
  }
}

void layers(Collector& collect, const Case& value) {
  int flat = 0;
  const auto& counts = value.plan.layers_per_chunk;
  for (std::size_t chunk = 0; chunk < counts.size(); ++chunk) {
    for (int layer = 0; layer < counts[chunk]; ++layer, ++flat) {
      if (value.plan.layers() == 1) return;
      collect.replanned(fmt::format("layer {} dropped", flat),
                        [&](PlanRequest& request, Case& smaller) {
                          --request.layers_per_chunk[chunk];
                          smaller.layers.erase(smaller.layers.begin() + flat);
                        });
    }
  }
}

void faults(Collector& collect, const Experiment& experiment) {
  if (!experiment.injection) return;
  const Injection& now = *experiment.injection;
  const auto change = [&](const std::string& what, auto edit) {
    collect.with(what, [&](Experiment& smaller) { edit(*smaller.injection); });
  };
  change("one fault", [](Injection& smaller) { smaller.second = 0; });
  change("fault once", [](Injection& smaller) { smaller.fault = Fault::kOnce; });
  for (const std::uint64_t nth : std::set<std::uint64_t>{1, 2, now.nth / 2, now.nth - 1}) {
    if (nth == 0 || nth >= now.nth) continue;
    change(fmt::format("fault at {}", nth), [&](Injection& smaller) { smaller.nth = nth; });
  }
  if (now.second > 1) change("second fault at 1", [](Injection& smaller) { smaller.second = 1; });
}

// Everything that has a plainest value.
void plain(Collector& collect, const Case& value) {
  const auto change = [&](const std::string& what, auto edit) {
    collect.with(what, [&](Experiment& smaller) { edit(smaller.value); });
  };
  for (const Mode mode : value.modes) {
    if (value.modes.size() > 1)
      change("mode " + to_string(mode), [&](Case& smaller) { smaller.modes = {mode}; });
  }
  change("one step", [](Case& smaller) { smaller.steps = 1; });
  for (std::size_t i = 0; i < value.layers.size(); ++i) {
    change(fmt::format("block of layer {}", i),
           [&](Case& smaller) { smaller.layers[i].block = "mlp"; });
    change(fmt::format("flags of layer {}", i), [&](Case& smaller) {
      LayerCase layer;
      layer.block = smaller.layers[i].block;
      smaller.layers[i] = layer;
    });
  }
  for (const std::int64_t hidden :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{8}, value.hidden / 2}) {
    if (hidden > 0 && hidden < value.hidden)
      change(fmt::format("hidden {}", hidden), [&](Case& smaller) { smaller.hidden = hidden; });
  }
  for (std::size_t i = 0; i < value.tokens.size(); ++i) {
    for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{2}, value.tokens[i] / 2}) {
      if (tokens > 0 && tokens < value.tokens[i])
        change(fmt::format("{} tokens in variant {}", tokens, i),
               [&](Case& smaller) { smaller.tokens[i] = tokens; });
    }
  }
  change("fp32", [](Case& smaller) { smaller.dtype = "fp32"; });
  change("no shadow memory", [](Case& smaller) { smaller.shadow = false; });
  change("all gradients", [](Case& smaller) { smaller.partial_backward = false; });
  change("submission order", [](Case& smaller) { smaller.order_seed = 0; });
  change("ascending addresses", [](Case& smaller) { smaller.addresses = "ascending"; });
  change("poison 0xFF", [](Case& smaller) { smaller.poison = 0xFF; });
}

}  // namespace

std::vector<Reduction> reductions(const Experiment& experiment) {
  Collector collect(experiment);
  shapes(collect, experiment.value);
  variants(collect, experiment.value);
  microbatches(collect, experiment.value);
  layers(collect, experiment.value);
  faults(collect, experiment);
  plain(collect, experiment.value);
  return collect.take();
}

}  // namespace slotgraph::fuzz

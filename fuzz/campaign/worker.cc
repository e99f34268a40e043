#include "fuzz/campaign/worker.h"

#include <fmt/format.h>
#include <malloc.h>

#include <cstdio>

#include "core/device/device.h"
#include "fuzz/execute/execute.h"
#include "fuzz/process/pool.h"

namespace slotgraph::fuzz {

void to_json(nlohmann::json& json, const CaseReply& reply) { json = to_json(reply.record); }
void from_json(const nlohmann::json& json, CaseReply& reply) {
  reply.record = record_from_json(json, "worker");
}

Generated draw_case(const Options& options, const Sources& sources, std::uint64_t index) {
  return options.large ? generate_large(sources, options.seed, index)
                       : generate(sources, case_seed(options.seed, index));
}

int run_worker(const Options& options, const Sources& sources) {
  // Cases allocate and free the same few MiB over and over: giving them back to the system each
  // time costs page faults.
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  device::initialise();
  Executor executor({.keep_captures = options.large, .compare_on_device = options.large});
  serve<CaseRequest>([&](const CaseRequest& request) {
    const Generated generated = draw_case(options, sources, request.index);
    CaseReply reply;
    if (generated.skipped) {
      reply.record.case_seed = generated.value.seed;
      reply.record.plan = generated.plan;
      reply.record.schedule = generated.schedule;
      reply.record.skipped = true;
    } else {
      reply.record = executor.run(generated.value);
    }
    reply.record.index = request.index;
    return reply;
  });
  const std::vector<Finding> left = executor.end();
  for (const Finding& finding : left)
    fmt::print(stderr, "{}, {}: {}\n", finding.property, finding.where, finding.what);
  return left.empty() ? kHolds : kViolated;
}

}  // namespace slotgraph::fuzz
